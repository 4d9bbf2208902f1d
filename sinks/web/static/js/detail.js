// One community: its shares now, its series with the interval, its flags.

import { get } from "./api.js";
import { h, setText, css, colour, colourValue } from "./dom.js";
import { percent, points, interval, count, compact, small, time, flag, none } from "./format.js";
import { chart, faded, timeAxis, wholeSteps } from "./chart.js";
import { bar } from "./marks.js";
import { Series, align, switches } from "./series.js";
import { marks } from "./alerts.js";
import { why } from "./why.js";

const ranges = [["15 min", 900], ["1 h", 3600], ["6 h", 21600], ["24 h", 86400], ["All", 0]];
const redrawEvery = 250;
const classesFirst = 3; // lines shown at first when there are many classes

// meanings say what the figures are; people who cannot point at them open the list.
const meanings = {
  Coverage: "share of the members without a label that have a prediction; the others are taken to be alike",
  Certificate: "proven bound on our own numerical error; it is no part of the interval",
  "λ": "share of closeness in the graph in the weights of the labels; 0: every label counts the same",
  Position: "place in the log; the same log gives the same estimate there",
  Interval: "where the share is, nine times in ten unless the configuration says otherwise",
  "Change, pp": "since the emission before, in percentage points, with its own standard error",
  "Std. error": "standard error of the share, in percentage points",
  Labels: "effective calibration labels behind the share; below 30 the estimate is thin",
  "Plain count": "mean prediction without adjustment (pcc)",
};

const explained = () => h("details", { class: "meanings" }, h("summary", {}, "What the figures mean"),
  h("dl", {}, Object.entries(meanings).map(([term, text]) => h("div", {}, h("dt", {}, term), h("dd", {}, text)))));

let rangeKept = 0; // survives going to another community

export function detail(info, name) {
  const state = { method: "", main: "", shown: null, series: new Map(), missing: "", loadedFrom: null };
  const k = info.classes.length;

  const methods = h("select", { "aria-label": "Method" });
  const facts = h("dl", { class: "facts" });
  const shares = bar(info.labels);
  const toggles = h("div", { class: "toggles", role: "group", "aria-label": "Classes in the chart" });
  const rangeBox = h("div", { class: "segments", role: "group", "aria-label": "Range" });
  const hover = h("p", { class: "hover", "aria-hidden": "true" });
  const body = h("tbody");
  const flagBox = h("div", { class: "flags" });
  const notice = h("p", { class: "note", hidden: true });
  const definition = h("p", { class: "definition", hidden: true });
  const alerts = marks(name, () => plot.redraw());
  const content = h("div", { class: "detail-body", hidden: true });
  const plot = chart(options, { height: 340, onHover: showHover, label: `Shares of ${name} over time; the table below holds the latest figures` });
  const columns = ["Class", "Share", "Interval", "Change, pp", "Std. error", "Labels", "Plain count"];
  const titles = columns.map((c) => meanings[c]);
  const moved = why(info, name, () => plot.redraw());
  content.append(
    h("div", { class: "card" }, shares.el, facts, explained()),
    h("div", { class: "card plot" }, h("div", { class: "chart-tools" }, toggles, rangeBox), plot.el, hover),
    moved.el,
    h("div", { class: "card scroll" }, h("table", { class: "figures" }, h("thead", {}, h("tr", {}, columns.map((c, i) => h("th", { scope: "col", title: titles[i] || undefined }, c)))), body)),
    flagBox);
  const el = h("section", { class: "detail" },
    h("p", { class: "crumb" }, h("a", { href: "#/" }, "← Communities")),
    h("div", { class: "bar-tools" }, h("h1", {}, name), h("div", { class: "tools" }, h("label", { class: "pick" }, h("span", {}, "Method"), methods))),
    definition, alerts.el, notice, content);

  const current = () => state.series.get(state.method);
  const plain = () => (state.method === "pcc" ? null : state.series.get("pcc"));

  function accept(estimates) {
    for (const e of estimates) {
      if (e.community !== name) continue;
      if (!state.series.has(e.method)) state.series.set(e.method, new Series());
      state.series.get(e.method).add(e);
    }
  }

  async function load() {
    try {
      const d = await get(`/api/v1/communities/${encodeURIComponent(name)}`);
      state.main = d.main;
      setText(definition, d.definition ? `Members: ${d.definition}` : "");
      definition.hidden = !d.definition;
      if (!d.estimates.some((e) => e.method === state.method)) state.method = d.main;
      accept(d.estimates);
      await loadHistory(state.method, d);
      if (state.method !== "pcc" && d.estimates.some((e) => e.method === "pcc")) await loadHistory("pcc", d);
      state.missing = "";
    } catch (err) {
      state.missing = err.status === 404 ? "There is no estimate of this community yet." : `No answer from the server: ${err.message}`;
    }
    drawMethods();
    draw();
  }

  async function loadHistory(method, d) {
    const latest = d.estimates.find((e) => e.method === method);
    const at = Date.parse(latest?.time);
    const from = rangeKept && Number.isFinite(at) ? new Date(at - 1000 * rangeKept).toISOString() : "";
    const reply = await get(`/api/v1/communities/${encodeURIComponent(name)}/estimates`, { method, from, points: 1500 });
    accept(reply.estimates);
  }

  function drawMethods() {
    const names = [...state.series.keys()];
    if (methods.children.length === names.length) return;
    methods.replaceChildren(...names.map((m) => h("option", { value: m, selected: m === state.method }, m)));
  }

  function drawToggles(latest) {
    if (!state.shown) {
      const order = [...info.classes.keys()].sort((a, b) => (latest.prevalence[b] ?? 0) - (latest.prevalence[a] ?? 0));
      state.shown = new Set(k === 2 ? [0] : k <= classesFirst ? order : order.slice(0, classesFirst));
    }
    if (toggles.children.length) {
      info.labels.forEach((_, i) => setText(toggles.children[i].lastChild, percent(latest.prevalence?.[i])));
      return;
    }
    toggles.append(...info.labels.map((label, i) => h("button", {
      type: "button", class: `toggle ${colour(i)}`, "aria-pressed": String(state.shown.has(i)),
      onclick: (event) => {
        if (state.shown.has(i)) state.shown.delete(i); else state.shown.add(i);
        event.currentTarget.setAttribute("aria-pressed", String(state.shown.has(i)));
        draw();
      },
    }, h("i"), h("span", {}, label), h("b", {}, percent(latest.prevalence?.[i])))));
  }

  rangeBox.append(...ranges.map(([label, seconds]) => h("button", {
    type: "button", "aria-pressed": String(seconds === rangeKept),
    onclick: (event) => {
      rangeKept = seconds;
      for (const b of rangeBox.children) b.setAttribute("aria-pressed", String(b === event.currentTarget));
      load();
    },
  }, label)));

  function options() {
    const shown = [...(state.shown || [])].sort((a, b) => a - b);
    const series = [{}], bands = [];
    for (const i of shown) {
      const stroke = colourValue(i);
      bands.push({ series: [series.length + 1, series.length], fill: faded(stroke, 0.16) });
      series.push({ stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } },
        { stroke, width: 2, points: { show: (u) => u.data[0].length < 3, size: 6, fill: stroke } });
      if (plain()) series.push({ stroke, width: 1.25, dash: [3, 4], points: { show: false } });
    }
    const timed = current()?.timed;
    return {
      series,
      bands,
      scales: { x: { time: false, range: xRange }, y: { range: (u, low, high) => yRange(low, high) } },
      axes: [timed ? timeAxis() : { space: 84, size: 26, incrs: wholeSteps, values: (u, at) => at.map((x) => compact(x)) },
        { size: 52, values: (u, at) => at.map((x) => `${+(100 * x).toFixed(1)} %`) }],
      hooks: { draw: [drawSwitches, (u) => alerts.draw(u, timed, shown.map((i) => info.classes[i])), (u) => moved.marks(u, timed)] },
    };
  }

  // xRange gives a single point some room.
  function xRange(u, low, high) {
    if (low === null || high === null) return [0, 1];
    return low === high ? [low - 30, high + 30] : [low, high];
  }

  function yRange(low, high) {
    if (low === null || high === null) return [0, 1];
    const pad = Math.max(0.01, 0.08 * (high - low));
    return [Math.max(0, low - pad), Math.min(1, high + pad)];
  }

  // drawSwitches marks where the model version changed.
  function drawSwitches(u) {
    const series = current();
    if (!series) return;
    const ratio = devicePixelRatio, { ctx } = u;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = css("--muted");
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.lineWidth = ratio;
    for (const p of switches(series.points)) {
      const value = series.timed ? p.at : p.position;
      if (value < u.scales.x.min || value > u.scales.x.max) continue;
      const x = Math.round(u.valToPos(value, "x", true)) + 0.5;
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, u.bbox.top);
      ctx.lineTo(x, u.bbox.top + u.bbox.height);
      ctx.stroke();
      const label = `model ${p.e.model_version || none}`.slice(0, 24);
      const right = x + ctx.measureText(label).width + 8 * ratio > u.bbox.left + u.bbox.width;
      ctx.textAlign = right ? "right" : "left";
      ctx.fillText(label, x + (right ? -4 : 4) * ratio, u.bbox.top + 11 * ratio);
    }
    ctx.restore();
  }

  function drawChart() {
    const series = current();
    state.visible = series.since(rangeKept);
    moved.set(state.visible, state.method);
    const plains = plain() && align(state.visible, plain().points);
    state.plains = plains;
    const data = [state.visible.map((p) => (series.timed ? p.at : p.position))];
    for (const i of [...state.shown].sort((a, b) => a - b)) {
      for (const field of ["low", "high", "prevalence"]) data.push(state.visible.map((p) => p.e[field]?.[i] ?? null));
      if (plains) data.push(plains.map((e) => e?.prevalence?.[i] ?? null));
    }
    plot.set(data, `${state.method} ${[...state.shown].sort()} ${Boolean(plains)} ${series.timed}`);
  }

  function showHover(index) {
    const p = index === null ? null : state.visible?.[index];
    if (!p) {
      setText(hover, plain() ? "Line: estimate. Band: interval. Dotted: plain count of the predictions." : "Line: estimate. Band: interval.");
      return;
    }
    const parts = [...state.shown].sort((a, b) => a - b).map((i) =>
      `${info.labels[i]} ${percent(p.e.prevalence?.[i])} (${interval(p.e.low?.[i], p.e.high?.[i])})`);
    setText(hover, `${Number.isFinite(p.at) ? time(p.e.time) : `position ${count(p.position)}`}  ·  ${parts.join("  ·  ")}`);
  }

  function drawFacts(e) {
    const rows = [
      ["Members", e.suppressed ? none : count(e.members)],
      ["Labelled", e.suppressed ? none : count(e.labelled)],
      ["Coverage", e.suppressed ? none : percent(e.coverage)],
      ["Certificate", e.suppressed ? none : small(e.certificate)],
      ["λ", e.suppressed ? none : (e.lambda ?? 0).toFixed(2)],
      ["Model", e.model_version || none],
      ["Incoming model", e.model_incoming ? `${e.model_incoming}, covers ${percent(e.model_incoming_coverage)}` : none],
      ["Log time", e.time ? time(e.time) : none],
      ["Position", count(e.position)],
    ];
    if (facts.children.length === 0) facts.append(...rows.map(([term]) => h("div", { title: meanings[term] }, h("dt", {}, term), h("dd"))));
    rows.forEach(([, value], i) => setText(facts.children[i].lastChild, value));
  }

  function drawTable(e, before) {
    const pcc = plain()?.last?.e;
    while (body.children.length < k) {
      const i = body.children.length;
      body.append(h("tr", {}, h("th", { scope: "row" }, h("i", { class: `dot ${colour(i)}` }), info.labels[i]), columns.slice(1).map((c) => h("td", { "data-head": c }))));
    }
    for (let i = 0; i < k; i++) {
      const change = before ? e.prevalence?.[i] - before.prevalence?.[i] : NaN;
      const error = e.se_change?.[i];
      const values = [percent(e.prevalence?.[i]), interval(e.low?.[i], e.high?.[i]) || none,
        points(change) + (Number.isFinite(change) && Number.isFinite(error) ? ` ± ${(100 * error).toFixed(1)}` : ""),
        percent(e.se?.[i]), compact(e.n_eff?.[i]), pcc ? percent(pcc.prevalence?.[i]) : none];
      values.forEach((v, c) => setText(body.children[i].children[c + 1], v));
    }
  }

  let flagsShown = null;
  function drawFlags(e) {
    const key = (e.flags || []).join(" ");
    if (key === flagsShown) return;
    flagsShown = key;
    flagBox.replaceChildren(...(e.flags || []).map((text) => {
      const f = flag(text, info.labels), doc = info.flags.find((d) => d.name === f.name);
      return h("div", { class: "card flag" }, h("h2", {}, f.name, f.detail && h("span", {}, f.detail)),
        doc && h("p", {}, `${doc.meaning[0].toUpperCase()}${doc.meaning.slice(1)}.`), doc && h("p", { class: "action" }, `What to do: ${doc.action}.`));
    }));
  }

  function draw() {
    const series = current();
    notice.hidden = !state.missing;
    setText(notice, state.missing);
    content.hidden = !series;
    if (!series) return;
    const e = series.last.e, before = series.points[series.points.length - 2]?.e;
    content.classList.toggle("suppressed", Boolean(e.suppressed));
    content.classList.toggle("blank", series.points.every((p) => p.e.suppressed));
    shares.set(e.prevalence);
    drawFacts(e);
    drawToggles(e);
    drawTable(e, before);
    drawFlags(e);
    drawChart();
    if (!hover.textContent) showHover(null);
  }

  let timer = 0;
  const later = () => { if (!timer) timer = setTimeout(() => { timer = 0; drawMethods(); draw(); }, redrawEvery); };
  methods.addEventListener("change", () => { state.method = methods.value; hover.textContent = ""; load(); });

  return {
    el,
    title: name,
    stream: { communities: [name], events: ["estimates"] },
    mounted() { load(); },
    refresh() { load(); alerts.refresh(); },
    estimates(message) {
      accept(message.estimates);
      if (!state.method && state.series.size) load();
      else later();
    },
    theme() { plot.rebuild(); },
    unmount() { clearTimeout(timer); alerts.unmount(); moved.stop(); plot.destroy(); },
  };
}
