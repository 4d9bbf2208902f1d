// Wraps uPlot: a chart that follows its container and the theme.

import { h, css } from "./dom.js";

// chart returns an element and set(data). options() is asked for series, bands,
// scales and axes each time the chart is built: at first, when shape changes and
// when the theme does. onHover and onPick get a place on the x axis, under the pointer
// (or null) and where it was clicked; onZoom, if given, replaces the chart's own zoom: it gets
// the two ends of the dragged range, or null for all.
export function chart(options, { height = 260, onHover, onPick, onZoom, onKey, label } = {}) {
  const el = h("div", {
    class: "chart", role: onKey ? "application" : "img", "aria-label": label,
    tabindex: onKey ? 0 : undefined, onkeydown: onKey,
  });
  let plot = null, data = null, shape = "", zoomed = false;

  function build() {
    plot?.destroy();
    plot = null;
    zoomed = false;
    if (!data || !el.clientWidth) return;
    const text = css("--muted"), line = css("--line");
    const o = options();
    plot = new window.uPlot(
      {
        width: el.clientWidth,
        height: tall(),
        padding: [10, 26, 0, 0],
        legend: { show: false },
        cursor: { points: { size: 7 }, drag: { x: true, y: false, setScale: !onZoom }, y: false },
        ...o,
        axes: o.axes.map((a) => ({
          stroke: text,
          font: "12px system-ui, sans-serif",
          grid: { stroke: line, width: 1 },
          ticks: { show: false },
          gap: 6,
          ...a,
        })),
        hooks: {
          ...(o.hooks || {}),
          setCursor: [(u) => onHover?.(u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : null)],
          setSelect: [select],
        },
      },
      data,
      el,
    );
    plot.over.addEventListener("dblclick", () => { zoomed = false; onZoom?.(null); });
    if (onPick) picks(plot);
  }

  function select(u) {
    if (!(u.select.width > 0)) return;
    zoomed = !onZoom;
    if (!onZoom) return;
    const ends = [u.select.left, u.select.left + u.select.width].map((x) => u.posToVal(x, "x"));
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    onZoom(ends);
  }

  // picks tells a click from the end of a drag.
  function picks(u) {
    let from = 0;
    u.over.addEventListener("mousedown", (event) => { from = event.clientX; });
    u.over.addEventListener("click", (event) => {
      if (Math.abs(event.clientX - from) < 4 && event.detail < 2)
        onPick(u.posToVal(event.clientX - u.over.getBoundingClientRect().left, "x"));
    });
  }

  const tall = () => Math.round(Math.min(height, Math.max(180, el.clientWidth * 0.62)));
  const observer = new ResizeObserver(() => {
    if (!plot) build();
    else if (el.clientWidth && plot.width !== el.clientWidth)
      plot.setSize({ width: el.clientWidth, height: tall() });
  });
  observer.observe(el);

  return {
    el,
    set(next, nextShape = "") {
      data = next;
      if (!plot || shape !== nextShape) {
        shape = nextShape;
        build();
      } else plot.setData(next, !zoomed);
      if (zoomed) plot.redraw();
    },
    rebuild: build,
    redraw() { plot?.redraw(); },
    canvas() { return plot?.ctx.canvas; },
    destroy() { observer.disconnect(); plot?.destroy(); plot = null; },
  };
}

// faded is a colour with an opacity, for bands.
export function faded(hex, alpha) {
  const n = Number.parseInt(hex.slice(1), 16);
  return `rgba(${n >> 16}, ${(n >> 8) & 255}, ${n & 255}, ${alpha})`;
}

const minute = 60, hour = 3600, day = 86400;
const timeSteps = [
  1,
  2,
  5,
  10,
  15,
  30,
  minute,
  2 * minute,
  5 * minute,
  10 * minute,
  15 * minute,
  30 * minute,
  hour,
  2 * hour,
  3 * hour,
  6 * hour,
  12 * hour,
  day,
  2 * day,
  7 * day,
  14 * day,
  28 * day,
  91 * day,
  182 * day,
  364 * day,
];
// wholeSteps are the steps of axes with counts.
export const wholeSteps = [...Array(16).keys()].flatMap((e) => [1, 2, 5].map((m) => m * 10 ** e));
const two = (n) => String(n).padStart(2, "0");

// timeAxis labels Unix seconds in the user's zone, with the date where it changes.
export function timeAxis() {
  return {
    space: 84,
    size: 26,
    incrs: timeSteps,
    values: (u, splits, axis, space, step) => {
      let last = "";
      return splits.map((t) => {
        const d = new Date(t * 1000);
        const date = d.toLocaleDateString("en", { day: "numeric", month: "short" });
        const seconds = step < minute ? `:${two(d.getSeconds())}` : "";
        const clock = `${two(d.getHours())}:${two(d.getMinutes())}${seconds}`;
        const text = step >= day ? date : last && last !== date ? date : clock;
        last = date;
        return text;
      });
    },
  };
}
