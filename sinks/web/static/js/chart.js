// Wraps uPlot: a chart that follows its container and the theme.

import { h, css } from "./dom.js";

// chart returns an element and set(data). options() is asked for series, bands,
// scales and axes each time the chart is built: at first, when shape changes and
// when the theme does. onHover gets the index under the pointer, or null.
export function chart(options, { height = 260, onHover, label } = {}) {
  const el = h("div", { class: "chart", role: "img", "aria-label": label });
  let plot = null, data = null, shape = "", zoomed = false;

  function build() {
    plot?.destroy();
    plot = null;
    zoomed = false;
    if (!data || !el.clientWidth) return;
    const text = css("--muted"), line = css("--line");
    const o = options();
    plot = new window.uPlot({
      width: el.clientWidth,
      height: tall(),
      padding: [10, 26, 0, 0],
      legend: { show: false },
      cursor: { points: { size: 7 }, drag: { x: true, y: false }, y: false },
      ...o,
      axes: o.axes.map((a) => ({ stroke: text, font: "12px system-ui, sans-serif", grid: { stroke: line, width: 1 }, ticks: { show: false }, gap: 6, ...a })),
      hooks: {
        ...(o.hooks || {}),
        setCursor: [(u) => onHover?.(u.cursor.idx ?? null)],
        setSelect: [(u) => { if (u.select.width > 0) zoomed = true; }],
      },
    }, data, el);
    plot.over.addEventListener("dblclick", () => { zoomed = false; });
  }

  const tall = () => Math.round(Math.min(height, Math.max(180, el.clientWidth * 0.62)));
  const observer = new ResizeObserver(() => {
    if (!plot) build();
    else if (el.clientWidth && plot.width !== el.clientWidth) plot.setSize({ width: el.clientWidth, height: tall() });
  });
  observer.observe(el);

  return {
    el,
    set(next, nextShape = "") {
      data = next;
      if (!plot || shape !== nextShape) { shape = nextShape; build(); } else plot.setData(next, !zoomed);
      if (zoomed) plot.redraw();
    },
    rebuild: build,
    redraw() { plot?.redraw(); },
    destroy() { observer.disconnect(); plot?.destroy(); plot = null; },
  };
}

// faded is a colour with an opacity, for bands.
export function faded(hex, alpha) {
  const n = Number.parseInt(hex.slice(1), 16);
  return `rgba(${n >> 16}, ${(n >> 8) & 255}, ${n & 255}, ${alpha})`;
}

const minute = 60, hour = 3600, day = 86400;
const timeSteps = [1, 2, 5, 10, 15, 30, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute,
  hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 91 * day, 182 * day, 364 * day];
export const wholeSteps = [...Array(16).keys()].flatMap((e) => [1, 2, 5].map((m) => m * 10 ** e)); // of what is counted
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
        const clock = `${two(d.getHours())}:${two(d.getMinutes())}${step < minute ? `:${two(d.getSeconds())}` : ""}`;
        const text = step >= day ? date : last && last !== date ? date : clock;
        last = date;
        return text;
      });
    },
  };
}
