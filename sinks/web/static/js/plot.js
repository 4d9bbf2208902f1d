// The chart of a community: lines with their intervals, of several classes or of several
// communities and methods, and marks. A value is drawn as a step: it is in force
// until the next one.

import { h, css, setText } from "./dom.js";
import { chart, faded, timeAxis, wholeSteps } from "./chart.js";
import { table, inForce, nearest } from "./series.js";
import { compact, count, interval, percent, time } from "./format.js";
import { legendWords } from "./picture.js";
import { drawDots, drawLevels, drawMarks } from "./marked.js";

const keyHelp = "Arrow keys go through the estimates, plus and minus zoom, Enter picks a point.";

const pointRoom = 30; // seconds on both sides of a point that is alone

// Plot draws; set({lines, timed, from, to, until, marks, levels, dots, confidence}) replaces the
// data. A line is {label, value, stroke, points, k, plain, revised}: points are its
// estimates, plain those of the plain count, revised the points shifted by later revisions. The
// first line's points are the ones that can be picked.
export class Plot {
  constructor({ label, overlay, onZoom, onPick }) {
    Object.assign(this, { overlay, onZoom, onPick, hovered: false, cursor: null });
    this.state = { lines: [], timed: true, from: null, to: null, marks: [], levels: [], dots: [] };
    this.hover = h("p", { class: "hover" });
    this.spoken = h("p", { class: "sr", role: "status" });
    this.chart = chart(() => this.options(), {
      height: 340, label: `${label}. ${keyHelp}`, onHover: (x) => this.showHover(x),
      onPick: (x) => this.pick(x), onZoom, onKey: (event) => this.key(event),
    });
    this.el = h("div", { class: "plot-box" }, this.chart.el, this.spoken);
  }

  at(p) { return this.state.timed ? p.at : p.position; }

  // ends returns the two ends of the x axis.
  ends() {
    const { lines, from, to, until, timed } = this.state;
    const all = lines.flatMap((l) => l.points.map((p) => this.at(p)));
    const last = Math.max(...all, timed && to === null && until ? until : -Infinity);
    return [from ?? Math.min(...all), to ?? last];
  }

  options() {
    const stepped = window.uPlot.paths.stepped({ align: 1 });
    const none = { stroke: "transparent", points: { show: false }, paths: stepped };
    const series = [{}], bands = [], { lines } = this.state;
    for (const line of lines) {
      const one = (more) => ({ ...none, stroke: line.stroke, ...more });
      const fill = faded(line.stroke, lines.length > 3 ? 0.1 : 0.16);
      bands.push({ series: [series.length + 1, series.length], fill });
      series.push(none, none, one({ width: 2 }));
      if (line.plain) series.push(one({ width: 1.25, dash: [3, 4] }));
      if (line.revised) series.push(one({ width: 1.5, dash: [8, 3] }));
    }
    const whole = { space: 84, size: 26, incrs: wholeSteps,
      values: (u, list) => list.map((x) => compact(x)) };
    const shares = { size: 52, values: (u, list) => list.map((x) => `${+(100 * x).toFixed(1)} %`) };
    return {
      series, bands, axes: [this.state.timed ? timeAxis() : whole, shares],
      scales: { x: { time: false, range: (u, low) => this.xRange(low) }, y: { range: yRange } },
      hooks: { draw: [(u) => this.drawOver(u)] },
    };
  }

  xRange(low) {
    if (low === null || low === undefined) return [0, 1];
    const [first, last] = this.ends(); // of one point the chart itself makes a range of years
    return first < last ? [first, last] : [first - pointRoom, last + pointRoom];
  }

  drawOver(u) {
    const { marks, levels, dots, timed } = this.state;
    drawLevels(u, levels);
    drawMarks(u, marks);
    drawDots(u, dots);
    this.overlay(u, timed);
    if (this.cursor !== null) this.drawCursor(u);
  }

  drawCursor(u) {
    const p = this.state.lines[0]?.points[this.cursor], k = this.state.lines[0]?.k;
    const share = p?.e.prevalence?.[k];
    if (!Number.isFinite(share)) return;
    const { ctx } = u, ratio = devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = css("--accent");
    ctx.lineWidth = 2 * ratio;
    ctx.setLineDash([]);
    ctx.beginPath();
    const x = u.valToPos(this.at(p), "x", true), y = u.valToPos(share, "y", true);
    ctx.arc(x, y, 6 * ratio, 0, 2 * Math.PI);
    ctx.stroke();
    ctx.restore();
  }

  set(next) {
    Object.assign(this.state, next);
    const { lines, timed, to, until } = this.state, tables = [];
    const places = new Set(lines.flatMap((l) => l.points.map((p) => this.at(p))));
    const alone = timed && places.size === 1 ? [...places][0] + pointRoom : undefined;
    const end = to === null ? until ?? alone : Math.min(to, until ?? to);
    const share = (k) => (e) => e.prevalence?.[k];
    for (const { points, k, plain, revised } of lines) {
      const fields = [(e) => e.low?.[k], (e) => e.high?.[k], share(k)];
      tables.push(table(points, timed, end, fields));
      if (plain) tables.push(table(plain, timed, end, [share(k)]));
      if (revised) tables.push(table(revised, timed, end, [share(k)]));
    }
    const shape = lines.map((l) => [l.label, l.stroke, Boolean(l.plain), Boolean(l.revised)]);
    this.chart.set(tables.length ? window.uPlot.join(tables) : [[]],
      JSON.stringify([timed, shape]));
    if (!this.hovered) this.showHover(null);
  }

  // words describe the values in force at a place on the x axis.
  words(x) {
    const { timed } = this.state;
    const known = this.state.lines.filter((l) => l.points.length);
    if (!known.length) return "";
    const force = (l) => l.points[inForce(l.points, timed, x)];
    const parts = known.map((l) => {
      const { e } = force(l);
      const range = interval(e.low?.[l.k], e.high?.[l.k]);
      return `${l.label} ${percent(e.prevalence?.[l.k])} (${range})`;
    });
    const p = force(known[0]), of = p.e.count > 1 ? ` (mean of ${count(p.e.count)})` : "";
    const when = Number.isFinite(p.at) ? `since ${time(p.e.time)}${of}`
      : `position ${count(p.position)}`;
    return `${when}  ·  ${parts.join("  ·  ")}`;
  }

  showHover(x) {
    this.hovered = x !== null;
    setText(this.hover, x === null ? legendWords(this.state) : this.words(x));
  }

  pick(x) {
    const list = this.state.lines[0]?.points || [];
    if (list.length) this.onPick(list[nearest(list, this.state.timed, x)].position);
  }

  // key goes through the estimates, zooms and picks.
  key(event) {
    const list = this.state.lines[0]?.points || [], last = list.length - 1;
    const now = this.cursor ?? last;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last,
      PageUp: now - 10, PageDown: now + 10 }[event.key];
    if (!list.length || event.ctrlKey || event.metaKey || event.altKey) return;
    if (to !== undefined) this.cursor = Math.max(0, Math.min(last, to));
    else if (event.key === "Enter") this.onPick(list[now].position);
    else if (event.key === "Escape") this.cursor = null;
    else if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 0.5 : 2, now);
    else return;
    event.preventDefault();
    this.showHover(this.cursor === null ? null : this.at(list[this.cursor]));
    if (this.cursor !== null) setText(this.spoken, this.words(this.at(list[this.cursor])));
    this.chart.redraw();
  }

  // zoom shows half or twice as much around a point, at most all.
  zoom(factor, index) {
    const [from, to] = this.ends(), { timed, lines } = this.state;
    if (!timed) return;
    const centre = this.at(lines[0].points[index]), width = factor * (to - from);
    const first = lines[0].points[0].at;
    const all = factor > 1 && centre - width / 2 <= first;
    this.onZoom(all ? null : [centre - width / 2, centre + width / 2]);
  }

  redraw() { this.chart.redraw(); }
  rebuild() { this.chart.rebuild(); }
  destroy() { this.chart.destroy(); }
}

function yRange(u, low, high) {
  if (low === null || high === null || low === undefined) return [0, 1];
  const pad = Math.max(0.01, 0.08 * (high - low));
  return [Math.max(0, low - pad), Math.min(1, high + pad)];
}
