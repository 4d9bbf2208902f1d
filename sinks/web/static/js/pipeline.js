// The pipeline: incoming events, lag, and refused events.

import { get } from "./api.js";
import { h, setText } from "./dom.js";
import { facts } from "./facts.js";
import { age, bytes, compact, count, duration, none, rate, time } from "./format.js";
import { grid } from "./grid.js";
import { quarantine } from "./quarantine.js";
import { kinds, rateCharts, rates } from "./rates.js";

const sum = (o) => Object.values(o).reduce((a, b) => a + b, 0);

// tileTexts are the figures at the top: a name, a heading and an explanation.
const tileTexts = [
  ["events", "Events per second", "applied, over the last two seconds"],
  ["lag", "Lag", "messages in the stream that are not applied yet"],
  ["step", "Last step", "how long one batch took"],
  ["communities", "Communities"],
  ["refused", "Quarantined", "messages and events refused since the start"],
  ["checkpoint", "Checkpoint", "age of the newest one"],
];

// tiles returns the figures at the top of the page.
function tiles() {
  const places = new Map();
  const el = h("div", { class: "tiles" }, tileTexts.map(([name, label, title]) => {
    const value = h("strong", {}, none), note = h("small");
    const tile = h("div", { class: "tile", title }, h("span", {}, label), value, note);
    places.set(name, { tile, value, note });
    return tile;
  }));

  function put(name, value, note) {
    setText(places.get(name).value, value);
    setText(places.get(name).note, note || "");
  }

  function set(s) {
    const since = (text) => (Date.parse(s.now) - Date.parse(text)) / 1000;
    const behind = s.log_time === null ? NaN : since(s.log_time);
    const current = behind < 2 ? "log time is current" : `log time ${age(behind)} ago`;
    const refused = sum(s.refused), c = s.checkpoint;
    put("events", rate(sum(rates())), `${compact(sum(s.events))} in all`);
    put("lag", count(s.lag), Number.isNaN(behind) ? "messages" : current);
    put("step", s.steps ? duration(s.step_seconds) : none, `${count(s.steps)} steps`);
    put("communities", count(s.communities));
    put("refused", count(refused), refused ? "see below" : "nothing refused");
    put("checkpoint", c ? duration(since(c.at)) : none,
      c ? `took ${duration(c.seconds)}` : "none yet");
    places.get("refused").tile.classList.toggle("warn", refused > 0);
  }
  return { el, set };
}

// trouble says why the pipeline is not ready.
function trouble(s) {
  const held = s.sinks.find((k) => k.condition === "holding");
  if (held) return `The pipeline waits for ${held.name}: ${held.reason}`;
  const stalled = s.pushed && s.state === "running";
  return `The pipeline is ${stalled ? "stalled: its last report is old" : s.state}` +
    (s.message ? `: ${s.message}` : ".");
}

// meeting gives how many vertices have a label, say, and how many of these have an edge: few do if
// the files have other ids than the edges.
function meeting({ vertices, with_edge: edges }) {
  if (vertices === 0) return none;
  const doubt = 2 * edges < vertices ? ": are the ids the same as those of the edges?" : "";
  return `${count(vertices)}, ${count(edges)} with an edge${doubt}`;
}

const stageRows = (s) => {
  const longest = Math.max(...s.stages.map((x) => x.seconds), 1e-9);
  return s.stages.map((x) => [x.name, duration(x.seconds), { share: x.seconds / longest }]);
};
const refusedRows = (s) => Object.entries(s.refused)
  .sort((a, b) => b[1] - a[1])
  .map(([name, n]) => [name, count(n)]);
const sinkRows = (s) => s.sinks.map((k) => [
  k.name,
  k.reason ? `${k.condition}: ${k.reason}` : k.condition,
  k.follows ? count(k.behind) : none,
  k.follows ? count(k.position) : none,
]);
const eventRows = (s) => kinds(Object.keys(s.events)).filter((name) => name in s.events)
  .map((name) => [name, count(s.events[name]), rate(rates()[name] ?? NaN)]);
const checkpointFacts = ({ checkpoint: c }) => [
  ["Position", c ? count(c.position) : none],
  ["Written", c ? time(c.at) : none],
  ["Took", c ? duration(c.seconds) : none],
  ["Size", c ? bytes(c.bytes) : none],
  ["Failed", count(c?.failed ?? 0)],
];
const graphFacts = (s) => [
  ["Vertices", count(s.graph.vertices)],
  ["Edges", count(s.graph.edges)],
  ["Labels", meeting(s.evidence.labels)],
  ["Predictions", meeting(s.evidence.predictions)],
  ["Members", meeting(s.evidence.members)],
  ["Position", count(s.position)],
  ["Log time", s.log_time ? time(s.log_time) : none],
];

// details returns the cards below the charts.
function details(info) {
  const list = quarantine(info);
  const reasons = grid(["Reason", "Count"], "Nothing was refused.");
  const stages = grid(["Stage", "Time", "Of the longest"], "No step yet.");
  const sinks = grid(["Sink", "State", "Behind", "Durable up to"], "No sinks reported.",
    { class: "figures" });
  const events = grid(["Kind", "Total", "Per second"], "No events yet.");
  const checkpoint = facts(), graph = facts();
  const el = h("div", { class: "masonry" },
    card("Quarantine", ...reasons.parts, list.el),
    card("Stages of the last step", ...stages.parts),
    card("Sinks", ...sinks.parts),
    card("Checkpoint", checkpoint.el),
    card("Events by kind", ...events.parts),
    card("Graph", graph.el));

  function set(s) {
    list.set(sum(s.refused));
    reasons.set(refusedRows(s));
    stages.set(stageRows(s));
    sinks.set(sinkRows(s));
    events.set(eventRows(s));
    checkpoint.set(checkpointFacts(s));
    graph.set(graphFacts(s));
  }
  return { el, set };
}

const card = (title, ...children) => h("div", { class: "card" }, h("h2", {}, title), children);

export function pipeline(info) {
  const banner = h("p", { class: "banner", role: "status", hidden: true });
  const top = tiles(), charts = rateCharts(), rest = details(info);
  const el = h("section", { class: "pipeline-page" },
    h("div", { class: "bar-tools" }, h("h1", {}, "Pipeline")),
    banner,
    top.el,
    card("Events per second", h("p", { class: "quiet" },
      "Since this page was opened, at most ten minutes."), ...charts.events),
    card("Lag, messages", charts.lag),
    rest.el);

  function draw(s) {
    top.set(s);
    banner.hidden = s.ready;
    setText(banner, trouble(s));
    rest.set(s);
    charts.draw();
  }

  async function load() {
    try {
      draw(await get("/api/v1/status"));
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
    status: draw,
    theme: charts.rebuild,
    unmount: charts.destroy,
  };
}
