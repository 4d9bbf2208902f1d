// One community: its shares now, its series with the interval, its flags.

import { apiURL, get } from "./api.js";
import { h, setText, download } from "./dom.js";
import { percent, interval } from "./format.js";
import { distinct, colour, colourValue } from "./palette.js";
import { figures } from "./figures.js";
import { plot as plotOf } from "./plot.js";
import { rangeBox } from "./range.js";
import { differences } from "./differences.js";
import { whom } from "./whom.js";
import { compare, linesMax, read as readLine, write as writeLine } from "./compare.js";
import { replace, whole, moment, iso } from "./address.js";
import { listAddress } from "./communities.js";
import { Series, rests } from "./series.js";
import { marks } from "./alerts.js";
import { why } from "./why.js";

const redrawEvery = 250;
const classesFirst = 3; // lines shown at first when there are many classes
const pointsWanted = 1500;
const missedMax = 100; // records that came while nothing was asked
const momentPoints = 30; // records before a moment that say how wide a part to show around it
const day = 86400;

export function detail(info, at, follow) {
  const { name, query } = at, k = info.classes.length;
  const state = {
    method: query.get("method") || "", k: whole(query, "class", k), shown: readClasses(query.get("show"), k),
    range: whole(query, "range") ?? 0, from: moment(query, "from"), to: moment(query, "to"),
    others: query.getAll("with").map(readLine).filter(Boolean).slice(0, linesMax - 1),
    ends: [whole(query, "a"), whole(query, "b")], at: whole(query, "at"),
    series: new Map(), missing: "", own: [], failed: new Map(),
  };

  const methods = h("select", { "aria-label": "Method", onchange: () => { state.method = methods.value; state.ends = [null, null]; changed(true); } });
  const classes = h("select", { "aria-label": "Class", onchange: () => { state.k = Number(classes.value); state.shown?.add(state.k); changed(); } },
    info.labels.map((label, i) => h("option", { value: i }, label)));
  const toggles = h("div", { class: "toggles", role: "group", "aria-label": "Classes in the chart" });
  const notice = h("p", { class: "note", hidden: true }), definition = h("p", { class: "definition", hidden: true });
  const alerts = marks(at.about || name, () => drawLater());
  const moved = why(info, name, (ends) => { if (ends) { state.ends = ends; address(); } plot.redraw(); });
  const plot = plotOf({
    quiet: info.quiet_seconds,
    label: `Shares of ${name} over time; the table below holds the latest figures`,
    overlays: [(u, timed) => alerts.draw(u, timed, [...shownClasses()].map((i) => info.classes[i])), (u, timed) => moved.marks(u, timed)],
    onZoom: (range) => setRange({ range: 0, from: range && range[0], to: range && range[1] }),
    onPick: (position) => moved.pick(position),
  });
  const range = rangeBox(setRange), parts = figures(info);
  const lines = compare(name, (others) => { state.others = others; changed(true); follow(); });
  const gaps = differences(name);
  const save = ["CSV", "PNG"].map((kind) => h("button", { type: "button", class: "plain", title: `Save what the chart shows as ${kind}`, onclick: () => (kind === "CSV" ? saveRows() : savePicture()) }, kind));
  const content = h("div", { class: "detail-body", hidden: true }, parts.head,
    h("div", { class: "card plot" }, h("div", { class: "chart-tools" }, toggles, lines.chips, h("div", { class: "chart-right" }, lines.open, save, range.el)),
      lines.form, range.fields, plot.el, plot.hover, gaps.el),
    moved.el, whom(name).el, parts.table, parts.flags);
  const el = h("section", { class: "detail" },
    h("p", { class: "crumb" }, h("a", { href: listAddress() }, "← Communities")),
    h("div", { class: "bar-tools" }, h("h1", {}, name), h("div", { class: "tools" },
      h("label", { class: "pick" }, h("span", {}, "Class"), classes), h("label", { class: "pick" }, h("span", {}, "Method"), methods))),
    definition, alerts.el, notice, content);

  const key = (line) => writeLine(line);
  const seriesOf = (line) => state.series.get(key(line));
  const current = () => seriesOf({ name, method: state.method });
  const plain = () => (state.method === "pcc" ? null : seriesOf({ name, method: "pcc" }));
  const shownClasses = () => (state.others.length ? new Set([state.k]) : state.shown || new Set());
  const path = (line) => `/api/v1/communities/${encodeURIComponent(line.name)}`;

  function address() {
    const free = [state.from, state.to].map((x) => (x === null ? null : iso(x)));
    replace(at.path, {
      method: state.method === state.main ? "" : state.method, class: state.k, show: state.shown && !state.others.length ? [...state.shown].sort((a, b) => a - b).join() : "",
      range: state.range || "", from: free[0], to: free[1], a: state.ends[0], b: state.ends[1], with: state.others.map(writeLine),
    });
  }

  // changed draws what the user chose, after reading more if need be.
  function changed(more) {
    address();
    if (more) load();
    else draw();
  }

  function setRange(next) {
    Object.assign(state, next);
    changed(true);
  }

  function accept(estimates) {
    for (const e of estimates) {
      const line = key({ name: e.community, method: e.method });
      if (!state.series.has(line)) state.series.set(line, new Series());
      state.series.get(line).add(e);
      if (e.community === name && !state.own.includes(e.method)) state.own.push(e.method);
    }
  }

  // span returns what to ask of the history.
  function span(latest) {
    if (state.from !== null || state.to !== null) return { from: state.from === null ? "" : iso(state.from), to: state.to === null ? "" : iso(state.to) };
    const end = Date.parse(latest?.time) / 1000;
    return { from: state.range && Number.isFinite(end) ? iso(end - state.range) : "", to: "" };
  }

  async function history(line, latest) {
    const got = await get(`${path(line)}/history`, { method: line.method, points: pointsWanted, ...span(latest) });
    state.series.set(key(line), Series.of(got, state.series.get(key(line))));
  }

  // around chooses the part of time about the position that the address names.
  async function around(d) {
    const line = { name, method: state.method };
    if (state.at === null || state.from !== null || state.to !== null) return;
    await history(line, null);
    const list = seriesOf(line)?.points || [], found = list.findLastIndex((p) => p.position <= state.at);
    const before = list[Math.max(0, found - momentPoints)];
    if (found < 0 || !Number.isFinite(list[found].at)) return;
    const width = Math.max(60, list[found].at - before.at);
    const end = Date.parse(d.estimates.find((e) => e.method === state.method)?.time) / 1000;
    Object.assign(state, { from: list[found].at - width, to: Math.min(list[found].at + width, Math.max(end, list[found].at + 1)) });
    address();
  }

  // newest reads the newest record and the one before it, which may have come since the last ask: the
  // error of a change is that between these two.
  async function newest() {
    const { estimates } = await get(`${path({ name })}/estimates`, { method: state.method, limit: 2 });
    state.before = estimates.length > 1 ? estimates[0] : null;
    accept(estimates.slice(-1));
  }

  async function load() {
    try {
      const d = await get(`/api/v1/communities/${encodeURIComponent(name)}`);
      state.main = d.main;
      setText(definition, d.definition ? `Members: ${d.definition}` : "");
      definition.hidden = !d.definition;
      state.method ||= d.main;
      for (const line of state.others) line.method ||= state.method;
      accept(d.estimates);
      const latest = d.estimates.find((e) => e.method === state.method);
      if (!latest) throw Object.assign(new Error(), { status: 404, text: `There is no estimate by the method ${state.method}; there are ${d.estimates.map((e) => e.method).join(", ")}.` });
      state.k ??= k === 2 || latest.suppressed ? 0 : latest.prevalence.reduce((best, x, i, all) => (x > all[best] ? i : best), 0);
      await around(d);
      state.at = null;
      const counted = state.method !== "pcc" && d.estimates.some((e) => e.method === "pcc");
      await Promise.all([history({ name, method: state.method }, latest), counted && history({ name, method: "pcc" }, latest)]);
      await newest();
      await Promise.all(state.others.map((line) => history(line, latest).then(() => state.failed.delete(key(line)), (err) => state.failed.set(key(line), err.message))));
      state.missing = "";
    } catch (err) {
      state.missing = err.text || (err.status === 404 ? "There is no estimate of this community yet. It may not have members, or its name is another; names are case-sensitive." : `No answer from the server: ${err.message}`);
    }
    state.loaded = true;
    draw();
  }

  function drawToggles(latest) {
    if (!state.shown) {
      const order = [...info.classes.keys()].sort((a, b) => (latest.prevalence?.[b] ?? 0) - (latest.prevalence?.[a] ?? 0));
      state.shown = new Set(k === 2 ? [state.k] : k <= classesFirst ? order : [state.k, ...order.filter((i) => i !== state.k)].slice(0, classesFirst));
    }
    const tint = distinct(info.slots, [...state.shown].sort((a, b) => a - b));
    while (toggles.children.length < k) {
      const i = toggles.children.length;
      toggles.append(h("button", { type: "button", onclick: () => { if (!state.shown.delete(i)) state.shown.add(i); changed(); } }, h("i"), h("span", {}, info.labels[i]), h("b")));
    }
    toggles.hidden = state.others.length > 0;
    info.labels.forEach((_, i) => {
      toggles.children[i].className = `toggle ${colour(tint.get(i) ?? info.slots[i])}`;
      toggles.children[i].setAttribute("aria-pressed", String(state.shown.has(i)));
      setText(toggles.children[i].lastChild, percent(latest.prevalence?.[i]));
    });
    return tint;
  }

  // visible returns the points of a series in the part of time that is shown.
  function visible(series) {
    if (state.from !== null || state.to !== null) return series.between(state.from, state.to);
    return series.between(state.range && current().timed ? current().last.at - state.range : null, null);
  }

  function drawChart(tint) {
    const own = [{ name, method: state.method }, ...state.others].map((line) => ({ ...line, series: seriesOf(line) }));
    const value = (series, i) => { const e = series?.last?.e; return e ? `${percent(e.prevalence?.[i])} (${interval(e.low?.[i], e.high?.[i])})` : ""; };
    lines.set(own.map((l) => ({ ...l, text: percent(l.series?.last?.e.prevalence?.[state.k]), missing: state.failed.get(key(l)) })), state.own, state.method);
    const main = visible(current());
    const drawn = state.others.length
      ? own.filter((l) => l.series).map((l, i) => ({ label: l.name === name ? l.method : `${l.name} ${l.method}`, value: value(l.series, state.k), stroke: colourValue(i), points: visible(l.series), k: state.k }))
      : [...state.shown].sort((a, b) => a - b).map((i) => ({ label: info.labels[i], value: value(current(), i), stroke: colourValue(tint.get(i)), points: main, k: i, plain: plain() && visible(plain()) }));
    gaps.set(state.method, [...new Set(state.others.filter((l) => l.method === state.method && l.name !== name).map((l) => l.name))], state.from, state.k, Math.max(...own.map((l) => l.series?.last?.position ?? 0)));
    moved.set(main, state.method, state.k, state.ends, alerts.firings(info.classes[state.k]));
    plot.set({ lines: drawn, timed: current().timed, from: state.from, to: state.to });
  }

  function draw() {
    if (!state.loaded) return; // one record is no chart yet
    if (state.own.length !== methods.children.length) methods.replaceChildren(...state.own.map((m) => h("option", { value: m }, m)));
    methods.value = state.method;
    classes.value = String(state.k ?? 0);
    range.set(state);
    const series = current();
    notice.hidden = !state.missing;
    setText(notice, state.missing);
    content.hidden = !series || Boolean(state.missing);
    if (content.hidden) return;
    const last = series.last, e = last.e, before = state.before;
    content.classList.toggle("suppressed", Boolean(e.suppressed));
    content.classList.toggle("blank", series.points.every((p) => p.e.suppressed));
    const then = series.timed && (series.points.findLast((p) => p.at <= last.at - day) || series.points.find(rests));
    parts.set(e, before, plain()?.last?.e, state.k, then && then !== last && { change: e.prevalence?.[state.k] - then.e.prevalence?.[state.k], seconds: last.at - then.at });
    drawChart(drawToggles(e));
  }

  async function saveRows() {
    const latest = current().last.e;
    const texts = await Promise.all([{ name, method: state.method }, ...state.others].map(async (line) => {
      const url = apiURL(`${path(line)}/history`);
      for (const [field, value] of Object.entries({ method: line.method, points: pointsWanted, format: "csv", ...span(latest) })) if (value) url.searchParams.set(field, value);
      const reply = await fetch(url);
      return reply.ok ? reply.text() : "";
    }));
    const rows = texts.filter(Boolean).map((text, i) => (i ? text.slice(text.indexOf("\n") + 1) : text));
    download(`${name}.csv`, new Blob(rows, { type: "text/csv" }));
  }

  async function savePicture() {
    download(`${name}.png`, await plot.picture(`${name} · ${state.others.length ? info.labels[state.k] : state.method}${info.pipeline ? ` · ${info.pipeline}` : ""}`));
  }

  let timer = 0, begun = null;
  const drawLater = () => { if (!timer) timer = setTimeout(() => { timer = 0; draw(); }, redrawEvery); };

  return {
    el,
    title: name,
    get names() { return [...new Set([name, ...state.others.map((o) => o.name)])]; },
    mounted() { begun = load(); },
    async refresh() { // what was published while nothing was asked
      alerts.refresh();
      const first = !state.loaded;
      if (first) await begun;
      if (!first || state.missing) return load();
      const { estimates } = await get(`${path({ name })}/estimates`, { method: state.method, limit: missedMax }).catch(() => ({ estimates: [] }));
      const last = current()?.last?.position;
      accept(estimates.filter((e) => e.position > last));
      return drawLater();
    },
    async estimates(list) {
      const shown = current()?.last?.e;
      accept(list);
      if (state.missing || !state.method && state.loaded) return load();
      if (shown && current().last.e !== shown) await newest().catch(() => { state.before = null; });
      return drawLater();
    },
    theme() { draw(); plot.rebuild(); },
    unmount() { clearTimeout(timer); alerts.unmount(); moved.stop(); lines.stop(); gaps.stop(); plot.destroy(); },
  };
}

// readClasses reads "0,2"; null when it names none.
function readClasses(text, k) {
  const list = (text || "").split(",").filter((x) => /^\d+$/.test(x)).map(Number).filter((i) => i < k);
  return list.length ? new Set(list) : null;
}
