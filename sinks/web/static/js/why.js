// Why it moved: two points of a series, and the causes of their difference.

import { get } from "./api.js";
import { h, setText, setAttr, css } from "./dom.js";
import { colour, distinct } from "./palette.js";
import { largestChange } from "./series.js";
import { oddities, reasons } from "./reasons.js";
import { classNamed, percent, points, count, small, timeBeside } from "./format.js";
import { explained } from "./flags.js";

const hint =
  "Drag the ends, or click two points of the chart. It starts at the last alert, or at " +
  "the largest change by news.";
const clockEvery = 500;

// fine has a digit more than points where that digit is all there is.
function fine(x) {
  const tiny = Math.abs(x) < 0.0005 && Math.abs(x) >= 0.00005;
  return tiny ? `${x > 0 ? "+" : "−"}${Math.abs(100 * x).toFixed(2)}` : points(x);
}

const place = (end, other) =>
  (end.time ? timeBeside(end.time, other.time) : `position ${count(end.position)}`);

// Why is a card about the class shown; set(points, method, k, ends, firings) gives it the visible
// points, the two chosen ones if there are, and the positions of alerts; pick(position) takes a
// point that was clicked; marks(u, timed) draws into the chart. onChoice gets the two positions
// that someone chose, or null after the first click.
export class Why {
  constructor(info, name, onChoice) {
    Object.assign(this, { info, name, onChoice, points: [], method: "", k: 0, ends: [null, null],
      chosen: false, picked: null, answer: null, asking: null });
    this.build();
  }

  build() {
    this.inputs = ["From", "To"].map((label, i) => {
      const input = h("input", { type: "range", min: 0, max: 1, step: 1,
        oninput: () => this.choose(i, Number(input.value)) });
      const text = h("output");
      return { input, text, el: h("label", { class: "end" }, h("span", {}, label), input, text) };
    });
    this.ask = h("button", { type: "button", class: "ask", onclick: () => this.load() }, "Explain");
    this.note = h("p", { class: "quiet", role: "status" });
    this.head = h("p", { class: "why-head", hidden: true });
    this.odd = h("ul", { class: "odd", hidden: true });
    this.body = h("tbody");
    this.largest = h("tbody");
    const heads = ["Cause", h("span", { class: "sr" }, "Bar"), "Points", "Changes"];
    this.table = h("table", { class: "why", hidden: true },
      h("thead", {}, h("tr", {}, heads.map((t) => h("th", { scope: "col" }, t)))), this.body);
    this.single = h("details", { hidden: true }, h("summary", {}, "Largest single changes"),
      h("p", { class: "quiet" }, "The estimate at the end, less the estimate " +
        "without each of them alone. They need not sum to the contribution."),
      h("table", { class: "why" }, this.largest));
    this.el = h("div", { class: "card why-card" }, h("h2", {}, "Why it moved"),
      h("div", { class: "why-ends" }, this.inputs.map((e) => e.el),
        h("div", { class: "why-go" }, this.ask)),
      this.note, this.head, this.odd, h("div", { class: "scroll" }, this.table), this.single);
  }

  // choose moves one end, and pushes the other out of its way.
  choose(end, i) {
    const last = this.points.length - 1, other = this.at(1 - end);
    i = Math.max(end, Math.min(last - 1 + end, i));
    this.ends[end] = this.points[i].position;
    if (end === 0 && other <= i) this.ends[1] = this.points[i + 1].position;
    if (end === 1 && other >= i) this.ends[0] = this.points[i - 1].position;
    this.choice();
  }

  choice() {
    this.chosen = true;
    this.drawEnds();
    this.onChoice([...this.ends]);
  }

  // pick takes one of two points that are clicked; the second explains.
  pick(position) {
    if (this.el.hidden) return;
    if (this.picked === null || this.picked === position) {
      this.picked = position;
      setText(this.note, "Now click the other point.");
      this.onChoice(null);
      return;
    }
    this.ends = [this.picked, position].sort((a, b) => a - b);
    this.picked = null;
    this.choice();
    this.load();
  }

  // at returns the index of an end among the points: the last not beyond it.
  at(end) {
    let i = this.points.length - 1;
    while (i > 0 && this.points[i].position > this.ends[end]) i--;
    return i;
  }

  // byDefault chooses the change that the last alert in the chart names, from where the alert says
  // that the share moved since, else the largest change that news made.
  byDefault(firings) {
    const list = this.points, last = list.at(-1).position;
    const seen = firings.filter((x) => x.position > list[0].position && x.position <= last);
    const newest = seen.reduce((a, b) => (a?.position >= b.position ? a : b), null);
    const until = newest && Math.max(1, list.findLastIndex((p) => p.position <= newest.position));
    let ends;
    if (newest && Number.isFinite(newest.since) && Number.isFinite(list[0].at)) {
      const from = list.findLastIndex((p) => p.at <= newest.since);
      ends = [Math.min(Math.max(0, from), until - 1), until];
    }
    this.ends = (ends ?? largestChange(list, this.k, until)).map((i) => list[i].position);
  }

  drawEnds() {
    this.inputs.forEach((e, end) => {
      const i = this.at(end), p = this.points[i], other = this.points[this.at(1 - end)];
      e.input.max = String(this.points.length - 1);
      e.input.value = String(i);
      const when = Number.isFinite(p.at) ? timeBeside(p.e.time, other.e.time)
        : `position ${count(p.position)}`;
      setText(e.text, `${when} · ${this.info.labels[this.k]} ${percent(p.e.prevalence[this.k])}`);
      setAttr(e.input, "aria-valuetext", e.text.textContent);
    });
  }

  set(list, method, k, wanted, firings) {
    if (method !== this.method) Object.assign(this, { method, chosen: false, answer: null });
    // Two points of a roll-up have one position, and nothing is between them to explain.
    this.points = list.filter((p, i) => p.e.prevalence?.length &&
      p.position !== list[i + 1]?.position);
    this.k = k;
    this.el.hidden = this.points.length < 2;
    if (this.el.hidden) return;
    const named = wanted[0] !== null && wanted[1] !== null && wanted[0] < wanted[1];
    const first = named && !this.chosen && !this.answer;
    if (named) Object.assign(this, { ends: [...wanted], chosen: true });
    else if (!this.chosen) this.byDefault(firings);
    if (!this.note.textContent && !this.answer && !this.asking) setText(this.note, hint);
    this.drawEnds();
    this.draw();
    if (first) this.load(); // someone shared an explanation
  }

  async load() {
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    const [from, to] = [this.at(0), this.at(1)].map((i) => this.points[i].position);
    this.ends = [from, to];
    this.choice(); // the explained change stays
    this.ask.disabled = true;
    const stop = this.progress(asking);
    try {
      const path = `/api/v1/communities/${encodeURIComponent(this.name)}/explain`;
      this.answer = await get(path, { method: this.method, from, to }, asking.signal);
      setText(this.note, "");
    } catch (err) {
      if (asking.signal.aborted) return;
      this.answer = null;
      setText(this.note, `No explanation: ${err.message}`);
    } finally {
      stop();
    }
    this.ask.disabled = false;
    this.drawEnds();
    this.draw();
  }

  // progress shows the server's work, until it is stopped.
  progress(asking) {
    const begun = performance.now();
    let ended = false;
    const show = async () => {
      const words = await get("/api/v1/status", {}, asking.signal)
        .then((s) => s.explaining, () => "");
      const took = Math.round((performance.now() - begun) / 1000);
      if (!ended) {
        setText(this.note, `Comparing the two states of the graph: ${words || "at work"} ` +
          `(${took} s). A large graph takes up to a minute.`);
      }
    };
    show();
    const timer = setInterval(show, 2 * clockEvery);
    return () => { ended = true; clearInterval(timer); };
  }

  // row is a cause, or the rest: its words, a bar from the middle, the number.
  row(label, value, widest, detail, title) {
    const half = Math.min(50, widest > 0 ? 50 * Math.abs(value) / widest : 0);
    const fill = h("i", { class: value < 0 ? "down" : "up" });
    fill.style.width = `${half.toFixed(2)}%`;
    fill.style.marginLeft = `${(value < 0 ? 50 - half : 50).toFixed(2)}%`;
    return h("tr", { title }, h("th", { scope: "row" }, label),
      h("td", { class: "signed", "aria-hidden": "true" }, h("div", {}, fill)),
      h("td", {}, fine(value)), h("td", { class: "detail-text" }, detail));
  }

  draw() {
    const x = this.answer, { k, info } = this;
    for (const node of [this.head, this.table]) node.hidden = !x;
    this.single.hidden = !x?.causes.some((c) => c.largest?.length);
    if (!x) this.odd.hidden = true;
    if (!x || (x.shown === k && x === this.drawn)) return;
    Object.assign(this, { drawn: x });
    x.shown = k;
    const share = (end) => (end.published || end.estimate.prevalence)[k];
    const flags = explained([...x.from.estimate.flags, ...x.to.estimate.flags], info);
    const error = (list) => (list ? ` ± ${(100 * list[k]).toFixed(1)}` : "");
    const parts = `The community moved it by ${points(x.moved[k])}${error(x.se_change)} points, ` +
      `what was learned revised it by ${points(x.revised[k])}${error(x.se_revised)} points. ` +
      "± is one standard error. The contributions sum to the change.";
    this.head.replaceChildren(h("b", {}, `${info.labels[k]} ${points(x.change[k])} points`),
      `: ${percent(share(x.from))} at ${place(x.from, x.to)}, ${percent(share(x.to))} at ` +
      `${place(x.to, x.from)}. ` + (x.causes.length ? parts
        : "Nothing that concerns the estimate differs between the two.") +
      (flags.length ? ` Flags: ${flags.map((f) => f.doc.title).join(", ")}.` : ""));
    const odd = oddities(x, info);
    this.odd.hidden = odd.length === 0;
    this.odd.replaceChildren(...odd.map((text) => h("li", {}, text)));
    this.drawCauses(x, k);
  }

  drawCauses(x, k) {
    const widest = Math.max(...x.causes.map((c) => Math.abs(c.contribution[k])),
      Math.abs(x.numerical[k]));
    const certificates = x.from.published
      ? `certificates ${small(x.from.certificate)} and ${small(x.to.certificate)}` : "";
    this.body.replaceChildren(
      ...x.causes.map((c) => {
        const { title, meaning } = reasons[c.kind] ?? { title: c.kind };
        return this.row(title, c.contribution[k], widest, details(c), meaning);
      }),
      this.row("Rest", x.numerical[k], widest, certificates,
        "numerical errors, and a fit of the corrections at another moment than in the pipeline"));
    setAttr(this.body, "class", colour(distinct(this.info.slots, [k]).get(k)));
    this.largest.replaceChildren(...x.causes.flatMap((c) => (c.largest || []).map((e, i) =>
      h("tr", {}, h("th", { scope: "row" }, i === 0 ? reasons[c.kind]?.title ?? c.kind : ""),
        h("td", { class: "detail-text" }, e.other ? `${e.vertex} – ${e.other}` : e.vertex),
        h("td", {}, fine(e.effect[k]))))));
  }

  // marks draws the ends into the chart.
  marks(u, timed) {
    if (this.el.hidden) return;
    const ratio = devicePixelRatio, { ctx } = u;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = css("--accent");
    ctx.lineWidth = 1.5 * ratio;
    ctx.setLineDash([]);
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    const picked = this.points.find((p) => p.position === this.picked);
    if (picked) {
      const x = u.valToPos(timed ? picked.at : picked.position, "x", true);
      ctx.beginPath();
      ctx.arc(x, u.valToPos(picked.e.prevalence[this.k], "y", true), 6 * ratio, 0, 2 * Math.PI);
      ctx.stroke();
    }
    for (const end of [0, 1]) this.markEnd(u, timed, end);
    ctx.restore();
  }

  markEnd(u, timed, end) {
    const ratio = devicePixelRatio, { ctx } = u, p = this.points[this.at(end)];
    const value = timed ? p.at : p.position;
    if (value < u.scales.x.min || value > u.scales.x.max) return;
    const x = Math.round(u.valToPos(value, "x", true)) + 0.5, bottom = u.bbox.top + u.bbox.height;
    ctx.beginPath();
    ctx.moveTo(x, u.bbox.top);
    ctx.lineTo(x, bottom);
    ctx.stroke();
    ctx.textAlign = end === 0 ? "right" : "left";
    const room = end === 0 ? x - u.bbox.left : u.bbox.left + u.bbox.width - x;
    if (room <= 34 * ratio) return;
    ctx.fillText(end === 0 ? "from" : "to", x + (end === 0 ? -4 : 4) * ratio, bottom - 5 * ratio);
  }

  stop() { this.asking?.abort(); }
}

function details(c) {
  if (!c.changes) return c.details.map((d) => d.what).join(", ");
  const list = [...c.details].sort((a, b) => b.count - a.count).slice(0, 5);
  const words = (what) => what.replace(/^(predicted|labelled) (?!vertices)(.+)$/,
    (_, how, name) => `${how} ${classNamed(name)}`);
  const parts = list.map((d) => `${count(d.count)} ${words(d.what)}`).join(", ");
  return parts ? `${count(c.changes)}: ${parts}` : count(c.changes);
}
