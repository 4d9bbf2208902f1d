// Marks in the chart of a community: beginnings and ends of its alerts, levels that rules
// watch, notes of the log, versions of the classifier, and revisions.

import { get } from "./api.js";
import { h, css, setText } from "./dom.js";
import { points } from "./format.js";
import { revisions, switches } from "./series.js";

const revisionsMost = 8; // the largest: a mark at each would hide the lines
const alertsMost = 40; // the newest
const refreshEvery = 2000;
const wordsMost = 28;

// Alerts keeps the alerts and notes of one community, and asks again every two seconds.
export class Alerts {
  constructor(name, redraw) {
    Object.assign(this, { name, redraw, list: [], notes: [], levels: [], gone: false });
    this.el = h("p", { class: "banner", role: "status", hidden: true });
    this.refresh();
  }

  async refresh() {
    clearTimeout(this.timer);
    try {
      const a = await get("/api/v1/alerts", { community: this.name, limit: 200 });
      const key = JSON.stringify([a.transitions[0]?.id, a.notes.length, a.levels]);
      Object.assign(this, { list: a.transitions, notes: a.notes, levels: a.levels });
      const firing = a.active.filter((x) => x.state === "firing");
      this.el.hidden = firing.length === 0;
      setText(this.el, firing.map((x) => `${x.rule}: ${x.text || x.reason}`).join("\n"));
      if (key !== this.key) this.redraw();
      this.key = key;
    } catch { /* the chart does without */ }
    if (!this.gone) this.timer = setTimeout(() => this.refresh(), refreshEvery);
  }

  // firings returns where alerts of a class began, and since when the share had moved by then.
  firings(name) {
    return this.list.filter((x) => x.state === "firing" && x.class === name)
      .map((x) => ({ position: x.position, since: Date.parse(x.moved_since) / 1000 }));
  }

  stop() { this.gone = true; clearTimeout(this.timer); }
}

// marksOf returns the marks, each {at, kind, text}, the most important last.
// main is the series that the chart shows, classes the names of the classes shown.
export function marksOf(alerts, main, timed, classes, k) {
  const at = (x) => (timed ? Date.parse(x.time) / 1000 : x.position);
  const place = (p) => (timed ? p.at : p.position);
  const short = (text) => (text.length > wordsMost ? `${text.slice(0, wordsMost - 1)}…` : text);
  const largest = revisions(main, k)
    .sort((a, b) => Math.abs(b.e.revised[k]) - Math.abs(a.e.revised[k])).slice(0, revisionsMost);
  const alerted = alerts.list.filter((x) => classes.includes(x.class)).slice(0, alertsMost);
  return [
    ...largest.map((p) => ({
      at: place(p),
      kind: "revision",
      text: `revised ${points(p.e.revised[k])}`,
    })),
    ...switches(main).map((p) => ({
      at: place(p),
      kind: "model",
      text: short(`model ${p.e.model_version}`),
    })),
    ...alerts.notes.map((x) => ({ at: at(x), kind: "note", text: short(x.note) })),
    ...alerted.map((x) =>
      x.state === "firing"
        ? { at: at(x), kind: "alert", text: short(x.rule) }
        : { at: at(x), kind: "ended", text: "" },
    ),
  ].filter((m) => Number.isFinite(m.at));
}

// levelsOf returns the levels that rules watch in the classes shown.
export function levelsOf(alerts, classes) {
  return alerts.levels
    .filter((l) => classes.includes(l.class))
    .map((l) => ({
      value: l.value,
      text: `${l.rule}: ${l.quantity} ${l.above ? "above" : "below"} ` +
          `${+(100 * l.value).toFixed(1)} %`,
    }));
}

const dashes = { alert: [], ended: [4, 3], note: [1, 2], model: [2, 3], revision: [6, 2] };
const colours = { alert: "--bad", note: "--text" };
const heights = { alert: 24, note: 37, model: 11, revision: 50 };

// drawMarks draws them into a chart. Of words that would overlap the first is drawn.
export function drawMarks(u, marks) {
  const ratio = devicePixelRatio, { ctx } = u, taken = [];
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.lineWidth = ratio;
  for (const m of marks.toReversed()) {
    if (m.at < u.scales.x.min || m.at > u.scales.x.max) continue;
    ctx.strokeStyle = ctx.fillStyle = css(colours[m.kind] ?? "--muted");
    const x = Math.round(u.valToPos(m.at, "x", true)) + 0.5;
    ctx.setLineDash(dashes[m.kind].map((d) => d * ratio));
    ctx.beginPath();
    ctx.moveTo(x, u.bbox.top);
    ctx.lineTo(x, u.bbox.top + u.bbox.height);
    ctx.stroke();
    const width = ctx.measureText(m.text).width + 8 * ratio;
    const right = x + width > u.bbox.left + u.bbox.width, from = right ? x - width : x;
    const other = (t) => t.kind === m.kind && from < t.to && t.from < from + width;
    if (!m.text || taken.some(other)) continue;
    taken.push({ kind: m.kind, from, to: from + width });
    ctx.textAlign = right ? "right" : "left";
    ctx.fillText(m.text, x + (right ? -4 : 4) * ratio, u.bbox.top + heights[m.kind] * ratio);
  }
  ctx.restore();
}

// drawLevels draws the levels that rules watch, as far as they are in sight.
export function drawLevels(u, levels) {
  const ratio = devicePixelRatio, { ctx } = u;
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.strokeStyle = ctx.fillStyle = css("--bad");
  ctx.lineWidth = ratio;
  ctx.setLineDash([6 * ratio, 4 * ratio]);
  ctx.textAlign = "right";
  for (const l of levels) {
    if (l.value < u.scales.y.min || l.value > u.scales.y.max) continue;
    const y = Math.round(u.valToPos(l.value, "y", true)) + 0.5, end = u.bbox.left + u.bbox.width;
    ctx.beginPath();
    ctx.moveTo(u.bbox.left, y);
    ctx.lineTo(end, y);
    ctx.stroke();
    ctx.fillText(l.text, end - 4 * ratio, y - 4 * ratio);
  }
  ctx.restore();
}

// drawDots draws shares among labels of members drawn at random, each with its interval.
export function drawDots(u, dots) {
  const ratio = devicePixelRatio, { ctx } = u;
  ctx.save();
  ctx.setLineDash([]);
  ctx.lineWidth = 1.5 * ratio;
  for (const d of dots) {
    if (d.at < u.scales.x.min || d.at > u.scales.x.max) continue;
    const x = u.valToPos(d.at, "x", true), y = (v) => u.valToPos(v, "y", true);
    ctx.strokeStyle = d.stroke;
    ctx.fillStyle = css("--card");
    ctx.beginPath();
    ctx.moveTo(x, y(d.low));
    ctx.lineTo(x, y(d.high));
    ctx.stroke();
    ctx.beginPath();
    ctx.arc(x, y(d.share), 4.5 * ratio, 0, 2 * Math.PI);
    ctx.fill();
    ctx.stroke();
  }
  ctx.restore();
}

// dotsOf returns a dot for each new draw of members: a record of the method audit with other
// labels than the one before.
export function dotsOf(points, timed, lines) {
  const changed = points.filter((p, i) => p.e.prevalence?.length && p.e.audit_labels > 0 &&
    (i === 0 || p.e.audit_labels !== points[i - 1].e.audit_labels));
  return lines.flatMap((l) => changed.map((p) => ({ at: timed ? p.at : p.position,
    share: p.e.prevalence[l.k], low: p.e.low?.[l.k] ?? p.e.prevalence[l.k],
    high: p.e.high?.[l.k] ?? p.e.prevalence[l.k], stroke: l.stroke })));
}
