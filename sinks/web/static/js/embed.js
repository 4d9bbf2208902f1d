// A chart to embed. The address has its options:
// /embed/NAME?class=yes&range=30d&title=...&note=...&source=...&colors=c0392b,2f62a8&theme=dark

import { get } from "./api.js";
import { h } from "./dom.js";
import { percent, interval } from "./format.js";
import { picture, themes } from "./picture.js";
import { Series } from "./series.js";

const askEvery = 60000;
const colours = ["#3b6fb6", "#d9822b", "#3f9b6b", "#b5485d", "#7d63b8", "#2b9eb3"];
const units = { m: 60, h: 3600, d: 86400, w: 604800 };
const root = document.getElementById("chart");
const query = new URLSearchParams(location.search);
const path = location.pathname.split("/").pop();

// seconds reads "30d" or "3600"; 0 for anything else.
function seconds(words) {
  const m = /^(\d+)([mhdw]?)$/.exec(words ?? "");
  return m ? Number(m[1]) * (units[m[2]] ?? 1) : 0;
}

// chosen returns the classes that the address names: for people, as in the log, or by number.
function chosen({ classes, labels }) {
  const given = (query.get("class") ?? "").split(",").filter(Boolean);
  const named = (c) => [classes, labels].find((names) => names.includes(c))?.indexOf(c);
  const found = given.map((c) => named(c) ?? Number(c))
    .filter((k) => Number.isInteger(k) && k >= 0 && k < classes.length);
  return found.length ? found : classes.length === 2 ? [1] : classes.map((_, k) => k).slice(0, 6);
}

function theme() {
  const asked = query.get("theme");
  if (themes[asked]) return asked;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

const isColour = (c) => /^[0-9a-fA-F]{6}$/.test(c);

function span(data) {
  const end = Date.parse(data.log_time ?? "") / 1000;
  const range = seconds(query.get("range"));
  const from = Date.parse(query.get("from") ?? "") / 1000;
  const to = Date.parse(query.get("to") ?? "") / 1000;
  return {
    from: Number.isFinite(from) ? from : range && Number.isFinite(end) ? end - range : null,
    to: Number.isFinite(to) ? to : null, until: Number.isFinite(end) ? end : undefined,
  };
}

function draw(data) {
  const series = Series.of(data.history), mode = theme();
  const own = [...(query.get("colors") ?? "").split(","), query.get("color") ?? ""].filter(
    isColour,
  );
  // what is in force now; the last point of the history spans a period
  const last = !query.get("to") && data.prevalence?.length ? data : series.last?.e;
  const lines = chosen(data).map((k, i) => ({
    label: data.classes[k],
    k,
    points: series.points,
    stroke: own[i] ? `#${own[i]}` : colours[i % colours.length],
    value: last
      ? `${percent(last.prevalence?.[k])} (${interval(last.low?.[k], last.high?.[k])})`
      : "",
  }));
  document.documentElement.dataset.theme = mode;
  document.title = query.get("title") || data.display;
  if (!series.last?.e.prevalence?.length) {
    root.replaceChildren(h("p", {}, "Nothing to show yet."));
    return;
  }
  root.replaceChildren(h("h1", { class: "sr" }, document.title), picture({
    lines, ...span(data), title: query.get("title") || data.display,
    subtitle: data.headline.level === "live" ? "" : data.headline.text,
    note: query.get("note") ?? "", source: query.get("source") || data.pipeline || "gqlstream",
    confidence: Math.round(100 * (data.confidence || 0.9)), colours: themes[mode],
    width: Math.max(300, root.clientWidth), height: Math.max(220, root.clientHeight),
  }));
}

let last = null;
async function load() {
  try {
    last = await get(`${path}/data`, { method: query.get("method"), from: query.get("from"),
      to: query.get("to"), points: 600 });
    draw(last);
  } catch (err) {
    if (!last) root.replaceChildren(h("p", {}, `No chart: ${err.message}.`));
  }
}

new ResizeObserver(() => { if (last) draw(last); }).observe(root);
setInterval(() => { if (!document.hidden) load(); }, askEvery);
load();
