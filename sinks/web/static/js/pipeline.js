// The pipeline: incoming events, lag, and refused events.

import { get } from "./api.js";
import { h, setText, css } from "./dom.js";
import { colour, colourValue } from "./palette.js";
import { quarantine } from "./quarantine.js";
import { rate, count, compact, duration, age, tick, time, bytes, none } from "./format.js";
import { chart, faded, timeAxis, wholeSteps } from "./chart.js";

const kinds = ["edge", "label", "prediction", "member", "vertex", "control"];
const samplesMax = 300;

// past holds the data of the charts since the page was opened. A kind that a status lacks is zero.
const past = { time: [], lag: [], rates: {} };

// Events of each kind a second, between two statuses some seconds apart, and the later status.
const ratesEvery = 2;
let rates = {}, counted = null;

// remember adds a status to the charts.
export function remember(s) {
  if (!s.pushed) return;
  const at = Date.parse(s.pushed) / 1000;
  if (counted && at - counted.at < ratesEvery) return;
  rates = {};
  for (const [name, all] of Object.entries(s.events)) {
    const more = all - (counted?.events[name] ?? 0);
    if (counted && more >= 0) rates[name] = more / (at - counted.at); // else counting has restarted
  }
  counted = { at, events: s.events };
  if (Object.keys(rates).length === 0) return;
  past.time.push(at);
  past.lag.push(s.lag);
  for (const name of Object.keys(rates))
    past.rates[name] ??= new Array(past.time.length - 1).fill(0);
  for (const [name, list] of Object.entries(past.rates)) list.push(rates[name] ?? 0);
  if (past.time.length > samplesMax)
    for (const list of [past.time, past.lag, ...Object.values(past.rates)]) list.shift();
}

// meeting shows how many vertices have a label, say, and how many of these have an edge: few do if
// the files have other ids than the edges.
function meeting({ vertices, with_edge: edges }) {
  if (vertices === 0) return none;
  const doubt = 2 * edges < vertices ? ": are the ids the same as those of the edges?" : "";
  return `${count(vertices)}, ${count(edges)} with an edge${doubt}`;
}

export function pipeline(info) {
  const state = { status: null };
  const tiles = new Map();
  const tile = (key, label, title) => {
    const value = h("strong", {}, none), note = h("small");
    tiles.set(key, { value, note });
    return h("div", { class: "tile", title }, h("span", {}, label), value, note);
  };
  const banner = h("p", { class: "banner", role: "status", hidden: true });
  const key = h("ul", { class: "legend" });
  const events = chart(eventOptions, {
    height: 220,
    label: "Events per second by kind since this page was opened, at most ten minutes",
  });
  const lag = chart(lagOptions, { height: 160, label: "Lag in messages over the same time" });
  const tables = {};
  const table = (name, heads, empty) => {
    const body = h("tbody"), note = h("p", { class: "quiet" }, empty);
    const grid = h(
      "table",
      { class: name === "sinks" ? "figures" : undefined },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((t) => h("th", { scope: "col" }, t)),
        ),
      ),
      body,
    );
    tables[name] = { body, note, grid, heads };
    return [grid, note];
  };
  const refused = quarantine(info);
  const checkpoint = h("dl", { class: "facts" }), graph = h("dl", { class: "facts" });
  const card = (title, ...children) => h("div", { class: "card" }, h("h2", {}, title), children);

  const el = h(
    "section",
    { class: "pipeline-page" },
    h("div", { class: "bar-tools" }, h("h1", {}, "Pipeline")),
    banner,
    h(
      "div",
      { class: "tiles" },
      tile("events", "Events per second", "applied, over the last two seconds"),
      tile("lag", "Lag", "messages in the stream that are not applied yet"),
      tile("step", "Last step", "how long one batch took"),
      tile("communities", "Communities"),
      tile("refused", "Quarantined", "messages and events refused since the start"),
      tile("checkpoint", "Checkpoint", "age of the newest one"),
    ),
    h("div", { class: "card" }, h("h2", {}, "Events per second"), key, events.el),
    card("Lag, messages", lag.el),
    h(
      "div",
      { class: "masonry" },
      card(
        "Quarantine",
        ...table("refused", ["Reason", "Count"], "Nothing was refused."),
        refused.el,
      ),
      card(
        "Stages of the last step",
        ...table("stages", ["Stage", "Time", "Of the longest"], "No step yet."),
      ),
      card(
        "Sinks",
        ...table("sinks", ["Sink", "State", "Behind", "Durable up to"], "No sinks reported."),
      ),
      card("Checkpoint", checkpoint),
      card("Events by kind", ...table("events", ["Kind", "Total", "Per second"], "No events yet.")),
      card("Graph", graph),
    ),
  );

  const xScale = { x: { time: false } };
  const floor = (u, low, high) => [0, high > 0 ? high * 1.1 : 1];
  const shownKinds = () => kinds.map((name, i) => [name, i]).filter(([name]) => past.rates[name]);
  function eventOptions() {
    return {
      series: [
        {},
        ...shownKinds().map(([, i]) => ({
          stroke: colourValue(i),
          width: 1.75,
          points: { show: false },
        })),
      ],
      scales: { ...xScale, y: { range: floor } },
      axes: [timeAxis(), { size: 52, values: (u, at) => at.map(tick) }],
    };
  }
  const area = (name) => ({
    stroke: css(name),
    fill: faded(css(name), 0.12),
    width: 1.75,
    points: { show: false },
  });
  function lagOptions() {
    return {
      series: [{}, area("--k0")],
      scales: { ...xScale, y: { range: floor } },
      axes: [timeAxis(), { size: 52, incrs: wholeSteps, values: (u, at) => at.map(tick) }],
    };
  }

  function drawCharts() {
    if (past.time.length < 2) return;
    const list = shownKinds();
    events.set(
      [past.time, ...list.map(([name]) => past.rates[name])],
      list.map(([name]) => name).join(),
    );
    lag.set([past.time, past.lag]);
    if (key.children.length !== list.length)
      key.replaceChildren(
        ...list.map(([name, i]) => h("li", {}, h("i", { class: colour(i) }), name)),
      );
  }

  function rows(name, list) {
    const { body, note, grid, heads } = tables[name];
    note.hidden = list.length > 0;
    grid.hidden = list.length === 0;
    while (body.children.length > list.length) body.lastChild.remove();
    list.forEach((cells, r) => {
      if (!body.children[r])
        body.append(
          h(
            "tr",
            {},
            cells.map((_, c) =>
              c === 0 ? h("th", { scope: "row" }) : h("td", { "data-head": heads[c] || undefined }),
            ),
          ),
        );
      cells.forEach((value, c) => {
        const cell = body.children[r].children[c];
        if (typeof value === "object") { // a bar
          if (!cell.firstChild) cell.append(h("div", { class: "gauge" }, h("i")));
          cell.firstChild.hidden = value.share === null;
          cell.firstChild.firstChild.style.width = `${Math.min(100, 100 * value.share)}%`;
        } else setText(cell, value);
      });
    });
  }

  function pairs(list, values) {
    if (list.children.length !== values.length)
      list.replaceChildren(...values.map(([term]) => h("div", {}, h("dt", {}, term), h("dd"))));
    values.forEach(([, value], i) => setText(list.children[i].lastChild, value));
  }

  const put = (name, value, note) => {
    setText(tiles.get(name).value, value);
    setText(tiles.get(name).note, note || "");
  };

  function draw() {
    const s = state.status;
    if (!s) return;
    const sum = (o) => Object.values(o).reduce((a, b) => a + b, 0);
    const rejected = sum(s.refused);
    refused.set(rejected);
    put("events", rate(sum(rates)), `${compact(sum(s.events))} in all`);
    const since = (text) => (Date.parse(s.now) - Date.parse(text)) / 1000;
    put(
      "lag",
      count(s.lag),
      s.log_time === null
        ? "messages"
        : since(s.log_time) < 2
          ? "log time is current"
          : `log time ${age(since(s.log_time))} ago`,
    );
    put("step", s.steps ? duration(s.step_seconds) : none, `${count(s.steps)} steps`);
    put("communities", count(s.communities));
    put("refused", count(rejected), rejected ? "see below" : "nothing refused");
    put(
      "checkpoint",
      s.checkpoint ? duration(since(s.checkpoint.at)) : none,
      s.checkpoint ? `took ${duration(s.checkpoint.seconds)}` : "none yet",
    );
    tiles.get("refused").value.parentElement.classList.toggle("warn", rejected > 0);
    banner.hidden = s.ready;
    const held = s.sinks.find((k) => k.condition === "holding");
    const stalled = s.pushed && s.state === "running";
    setText(
      banner,
      held
        ? `The pipeline waits for ${held.name}: ${held.reason}`
        : `The pipeline is ${stalled ? "stalled: its last report is old" : s.state}` +
            (s.message ? `: ${s.message}` : "."),
    );
    const longest = Math.max(...s.stages.map((x) => x.seconds), 1e-9);
    rows(
      "refused",
      Object.entries(s.refused)
        .sort((a, b) => b[1] - a[1])
        .map(([name, n]) => [name, count(n)]),
    );
    rows(
      "stages",
      s.stages.map((x) => [x.name, duration(x.seconds), { share: x.seconds / longest }]),
    );
    rows(
      "sinks",
      s.sinks.map((k) => [
        k.name,
        k.reason ? `${k.condition}: ${k.reason}` : k.condition,
        k.follows ? count(k.behind) : none,
        k.follows ? count(k.position) : none,
      ]),
    );
    rows(
      "events",
      kinds
        .filter((name) => name in s.events)
        .map((name) => [name, count(s.events[name]), rate(rates[name] ?? NaN)]),
    );
    const c = s.checkpoint;
    pairs(checkpoint, [
      ["Position", c ? count(c.position) : none],
      ["Written", c ? time(c.at) : none],
      ["Took", c ? duration(c.seconds) : none],
      ["Size", c ? bytes(c.bytes) : none],
      ["Failed", count(c?.failed ?? 0)],
    ]);
    pairs(graph, [["Vertices", count(s.graph.vertices)], ["Edges", count(s.graph.edges)],
      ["Labels", meeting(s.evidence.labels)], ["Predictions", meeting(s.evidence.predictions)],
      ["Members", meeting(s.evidence.members)],
      ["Position", count(s.position)], ["Log time", s.log_time ? time(s.log_time) : none]]);
    drawCharts();
  }

  async function load() {
    try {
      state.status = await get("/api/v1/status");
      draw();
    } catch (err) {
      banner.hidden = false;
      setText(banner, `No answer from the server: ${err.message}`);
    }
  }

  return {
    el,
    title: "Pipeline",
    names: [],
    mounted() { load(); },
    refresh() { load(); },
    status(s) { state.status = s; draw(); },
    theme() { for (const c of [events, lag]) c.rebuild(); },
    unmount() { for (const c of [events, lag]) c.destroy(); },
  };
}
