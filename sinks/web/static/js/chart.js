// Wraps uPlot: a chart that follows its container and the theme.

import { h, css } from "./dom.js";

// styled gives axes the colours and the type of the page.
function styled(axes) {
  const stroke = css("--muted"), grid = { stroke: css("--line"), width: 1 };
  const font = "12px system-ui, sans-serif";
  return axes.map((a) => ({ stroke, font, grid, ticks: { show: false }, gap: 6, ...a }));
}

// picks calls onPick with a place on the x axis that was clicked: the end of a drag is no click.
function picks(plot, onPick) {
  let from = 0;
  plot.over.addEventListener("mousedown", (event) => { from = event.clientX; });
  plot.over.addEventListener("click", (event) => {
    if (Math.abs(event.clientX - from) < 4 && event.detail < 2)
      onPick(plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, "x"));
  });
}

// Chart is a plot in an element. See chart.
class Chart {
  constructor(options, { height = 260, onHover, onPick, onZoom, onKey, label }) {
    Object.assign(this, { options, height, onHover, onPick, onZoom });
    Object.assign(this, { plot: null, data: null, shape: "", zoomed: false });
    this.el = h("div", {
      class: "chart", role: onKey ? "application" : "img", "aria-label": label,
      tabindex: onKey ? 0 : undefined, onkeydown: onKey,
    });
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(this.el);
  }

  tall() { return Math.round(Math.min(this.height, Math.max(180, this.el.clientWidth * 0.62))); }

  fit() {
    const width = this.el.clientWidth;
    if (!this.plot) this.rebuild();
    else if (width && this.plot.width !== width)
      this.plot.setSize({ width, height: this.tall() });
  }

  rebuild() {
    this.plot?.destroy();
    this.plot = null;
    this.zoomed = false;
    if (!this.data || !this.el.clientWidth) return;
    const o = this.options(), zooms = !this.onZoom;
    this.plot = new window.uPlot({
      width: this.el.clientWidth,
      height: this.tall(),
      padding: [10, 26, 0, 0],
      legend: { show: false },
      cursor: { points: { size: 7 }, drag: { x: true, y: false, setScale: zooms }, y: false },
      ...o,
      axes: styled(o.axes),
      hooks: {
        ...(o.hooks || {}),
        setCursor: [(u) => this.hover(u)],
        setSelect: [(u) => this.select(u)],
      },
    }, this.data, this.el);
    this.plot.over.addEventListener("dblclick", () => {
      this.zoomed = false;
      this.onZoom?.(null);
    });
    if (this.onPick) picks(this.plot, this.onPick);
  }

  hover(u) { this.onHover?.(u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : null); }

  select(u) {
    if (!(u.select.width > 0)) return;
    this.zoomed = !this.onZoom;
    if (!this.onZoom) return;
    const ends = [u.select.left, u.select.left + u.select.width].map((x) => u.posToVal(x, "x"));
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.onZoom(ends);
  }

  set(data, shape = "") {
    this.data = data;
    if (!this.plot || this.shape !== shape) {
      this.shape = shape;
      this.rebuild();
    } else this.plot.setData(data, !this.zoomed);
    if (this.zoomed) this.plot.redraw();
  }

  redraw() { this.plot?.redraw(); }

  canvas() { return this.plot?.ctx.canvas; }

  destroy() {
    this.observer.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }
}

// chart returns an element and set(data, shape). options() is asked for series, bands, scales and
// axes each time the chart is built: at first, when shape changes and when the theme does. onHover
// and onPick get a place on the x axis, under the pointer (or null) and where it was clicked;
// onZoom, if given, replaces the chart's own zoom: it gets the two ends of the dragged range, or
// null for all.
export const chart = (options, more = {}) => new Chart(options, more);

// faded is a colour with an opacity, for bands.
export function faded(hex, alpha) {
  const n = Number.parseInt(hex.slice(1), 16);
  return `rgba(${n >> 16}, ${(n >> 8) & 255}, ${n & 255}, ${alpha})`;
}

const minute = 60, hour = 3600, day = 86400;
const timeSteps = [
  1, 2, 5, 10, 15, 30,
  ...[1, 2, 5, 10, 15, 30].map((n) => n * minute),
  ...[1, 2, 3, 6, 12].map((n) => n * hour),
  ...[1, 2, 7, 14, 28, 91, 182, 364].map((n) => n * day),
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
