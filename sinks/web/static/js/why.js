// Why it moved: two points of a series, and what contributed to the difference.

import { get } from "./api.js";
import { h, setText, setAttr, css } from "./dom.js";
import { colour, distinct } from "./palette.js";
import { largestChange } from "./series.js";
import { percent, points, count, small, timeBeside, flag } from "./format.js";

const words = {
  joined: "Members joined", left: "Members left", predictions: "Predictions", model: "Model version", labels: "Labels", edges: "Edges",
  coefficients: "Coefficients", gamma: "Gamma",
};

// why returns a card about the class shown; set(points, method, k, ends, firings) gives
// it the visible points, the two chosen ones if there are, and the positions of alerts;
// pick(position) takes a point that was clicked; marks(u, timed) draws into the chart.
// onChoice gets the two positions that someone chose, or null after the first click.
export function why(info, name, onChoice) {
  const state = { points: [], method: "", k: 0, ends: [null, null], chosen: false, picked: null, answer: null, asking: null };

  const ends = ["From", "To"].map((label, i) => {
    const input = h("input", { type: "range", min: 0, max: 1, step: 1, oninput: () => choose(i, Number(input.value)) });
    const text = h("output");
    return { input, text, el: h("label", { class: "end" }, h("span", {}, label), input, text) };
  });
  const ask = h("button", { type: "button", class: "ask", onclick: load }, "Explain");
  const note = h("p", { class: "quiet", role: "status" });
  const head = h("p", { class: "why-head", hidden: true });
  const body = h("tbody"), largest = h("tbody");
  const table = h("table", { class: "why", hidden: true }, h("thead", {}, h("tr", {},
    ["Because of", h("span", { class: "sr" }, "Bar"), "Points", "What happened"].map((t) => h("th", { scope: "col" }, t)))), body);
  const single = h("details", { hidden: true }, h("summary", {}, "Largest single changes"),
    h("p", { class: "quiet" }, "How the estimate at the end differs from what it would be without each of them alone. They need not sum to the contribution."),
    h("table", { class: "why" }, largest));
  const el = h("div", { class: "card why-card" }, h("h2", {}, "Why it moved"),
    h("div", { class: "why-ends" }, ends.map((e) => e.el), h("div", { class: "why-go" }, ask)), note, head,
    h("div", { class: "scroll" }, table), single);
  const hint = "Two points: the last alert, or the largest change. Click two points of the chart, or move the sliders.";

  // choose takes a point for one end and keeps the ends in order.
  function choose(end, index) {
    const i = end === 0 ? Math.min(index, state.points.length - 2) : Math.max(index, 1);
    const other = at(1 - end);
    state.ends[end] = state.points[i].position;
    if (end === 0 && other <= i) state.ends[1] = state.points[i + 1].position;
    if (end === 1 && other >= i) state.ends[0] = state.points[i - 1].position;
    chosen();
  }

  function chosen() {
    state.chosen = true;
    drawEnds();
    onChoice([...state.ends]);
  }

  // pick takes one of two points that are clicked; the second explains.
  function pick(position) {
    if (el.hidden) return;
    if (state.picked === null || state.picked === position) {
      state.picked = position;
      setText(note, "Now click the other point.");
      onChoice(null);
      return;
    }
    state.ends = [state.picked, position].sort((a, b) => a - b);
    state.picked = null;
    chosen();
    load();
  }

  // at returns the index of an end among the points: the last not beyond it.
  function at(end) {
    let i = state.points.length - 1;
    while (i > 0 && state.points[i].position > state.ends[end]) i--;
    return i;
  }

  // byDefault chooses the change that ended in the last alert of what is shown, else the
  // largest.
  function byDefault(firings) {
    const list = state.points, seen = firings.filter((x) => x > list[0].position && x <= list[list.length - 1].position);
    const until = seen.length ? Math.max(1, list.findLastIndex((p) => p.position <= Math.max(...seen))) : null;
    const [i, j] = largestChange(list, state.k, until);
    state.ends = [list[i].position, list[j].position];
  }

  function drawEnds() {
    ends.forEach((e, end) => {
      const i = at(end), p = state.points[i], other = state.points[at(1 - end)];
      e.input.max = String(state.points.length - 1);
      e.input.value = String(i);
      const when = Number.isFinite(p.at) ? timeBeside(p.e.time, other.e.time) : `position ${count(p.position)}`;
      setText(e.text, `${when} · ${info.labels[state.k]} ${percent(p.e.prevalence[state.k])}`);
      setAttr(e.input, "aria-valuetext", e.text.textContent);
    });
  }

  function set(list, method, k, wanted, firings) {
    if (method !== state.method) Object.assign(state, { method, chosen: false, answer: null });
    state.points = list.filter((p) => p.e.prevalence?.length);
    state.k = k;
    el.hidden = state.points.length < 2;
    if (el.hidden) return;
    const named = wanted[0] !== null && wanted[1] !== null && wanted[0] < wanted[1];
    const first = named && !state.chosen && !state.answer;
    if (named) Object.assign(state, { ends: [...wanted], chosen: true });
    else if (!state.chosen) byDefault(firings);
    if (!note.textContent && !state.answer && !state.asking) setText(note, hint);
    drawEnds();
    draw();
    if (first) load(); // someone shared an explanation
  }

  async function load() {
    state.asking?.abort();
    const asking = state.asking = new AbortController();
    const [from, to] = [at(0), at(1)].map((i) => state.points[i].position);
    state.ends = [from, to];
    chosen(); // what is explained stays so
    ask.disabled = true;
    setText(note, "Comparing the two states of the graph …");
    try {
      const answer = await get(`/api/v1/communities/${encodeURIComponent(name)}/explain`, { method: state.method, from, to }, asking.signal);
      state.answer = answer;
      setText(note, "");
    } catch (err) {
      if (asking.signal.aborted) return;
      state.answer = null;
      setText(note, `No explanation: ${err.message}`);
    }
    ask.disabled = false;
    drawEnds();
    draw();
  }

  // row is a cause, or what is left: its words, a bar from the middle, the number.
  function row(label, value, widest, detail, title) {
    const half = Math.min(50, widest > 0 ? 50 * Math.abs(value) / widest : 0);
    const fill = h("i", { class: value < 0 ? "down" : "up" });
    fill.style.width = `${half.toFixed(2)}%`;
    fill.style.marginLeft = `${(value < 0 ? 50 - half : 50).toFixed(2)}%`;
    return h("tr", { title }, h("th", { scope: "row" }, label), h("td", { class: "signed", "aria-hidden": "true" }, h("div", {}, fill)),
      h("td", {}, fine(value)), h("td", { class: "detail-text" }, detail));
  }

  // fine has a digit more than points where that digit is all there is.
  const fine = (x) => (Math.abs(x) < 0.0005 && Math.abs(x) >= 0.00005 ? `${x > 0 ? "+" : "−"}${Math.abs(100 * x).toFixed(2)}` : points(x));
  const share = (end) => (end.published || end.estimate.prevalence)[state.k];
  const place = (end, other) => (end.time ? timeBeside(end.time, other.time) : `position ${count(end.position)}`);

  function draw() {
    const x = state.answer;
    for (const node of [head, table]) node.hidden = !x;
    single.hidden = !x?.causes.some((c) => c.largest?.length);
    if (!x || (x.shown === state.k && x === draw.last)) return;
    draw.last = x;
    x.shown = state.k;
    const k = state.k, all = [...x.causes.map((c) => c.contribution[k]), x.numerical[k]];
    const widest = Math.max(...all.map(Math.abs));
    const flags = [...new Set([...x.from.estimate.flags, ...x.to.estimate.flags].map((f) => flag(f, info.labels).name))];
    head.replaceChildren(h("b", {}, `${info.labels[k]} ${points(x.change[k])} points`),
      `: ${percent(share(x.from))} at ${place(x.from, x.to)}, ${percent(share(x.to))} at ${place(x.to, x.from)}. ` +
      (x.causes.length ? "The contributions sum to the change." : "Nothing that concerns the estimate differs between the two.") +
      (flags.length ? ` Flags: ${flags.join(", ")}.` : ""));
    body.replaceChildren(
      ...x.causes.map((c) => row(words[c.kind] || c.kind, c.contribution[k], widest, details(c))),
      row("Our own error", x.numerical[k], widest, x.from.published ? `certificates ${small(x.from.certificate)} and ${small(x.to.certificate)}` : "",
        "the numerical error of the two published estimates"));
    setAttr(body, "class", colour(distinct(info.slots, [k]).get(k)));
    largest.replaceChildren(...x.causes.flatMap((c) => (c.largest || []).map((e, i) => h("tr", {},
      h("th", { scope: "row" }, i === 0 ? words[c.kind] || c.kind : ""),
      h("td", { class: "detail-text" }, e.other ? `${e.vertex} – ${e.other}` : e.vertex), h("td", {}, `${e.effect[k] < 0 ? "−" : "+"}${Math.abs(100 * e.effect[k]).toFixed(2)}`)))));
  }

  function details(c) {
    if (!c.changes) return c.details.map((d) => d.what).join(", ");
    const list = [...c.details].sort((a, b) => b.count - a.count).slice(0, 5);
    return `${count(c.changes)}: ${list.map((d) => `${count(d.count)} ${d.what}`).join(", ")}`;
  }

  // marks draws the ends into the chart.
  function marks(u, timed) {
    if (el.hidden) return;
    const ratio = devicePixelRatio, { ctx } = u;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = css("--accent");
    ctx.lineWidth = 1.5 * ratio;
    ctx.setLineDash([]);
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    const picked = state.points.find((p) => p.position === state.picked);
    if (picked) {
      ctx.beginPath();
      ctx.arc(u.valToPos(timed ? picked.at : picked.position, "x", true), u.valToPos(picked.e.prevalence[state.k], "y", true), 6 * ratio, 0, 2 * Math.PI);
      ctx.stroke();
    }
    [0, 1].forEach((end) => {
      const p = state.points[at(end)], value = timed ? p.at : p.position;
      if (value < u.scales.x.min || value > u.scales.x.max) return;
      const x = Math.round(u.valToPos(value, "x", true)) + 0.5, bottom = u.bbox.top + u.bbox.height;
      ctx.beginPath();
      ctx.moveTo(x, u.bbox.top);
      ctx.lineTo(x, bottom);
      ctx.stroke();
      ctx.textAlign = end === 0 ? "right" : "left";
      const room = end === 0 ? x - u.bbox.left : u.bbox.left + u.bbox.width - x;
      if (room > 34 * ratio) ctx.fillText(end === 0 ? "from" : "to", x + (end === 0 ? -4 : 4) * ratio, bottom - 5 * ratio);
    });
    ctx.restore();
  }

  return { el, set, pick, marks, stop() { state.asking?.abort(); } };
}
