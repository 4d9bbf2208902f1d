// Turns numbers and times into text.

import { moment } from "./time.js";

export const one = new Intl.NumberFormat("en", {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const none = "–";

export const percent = (x) => (Number.isFinite(x) ? `${one.format(100 * x)} %` : none);
export function points(x) { // percentage points, with a sign unless they round to nothing
  if (!Number.isFinite(x)) return none;
  const text = one.format(Math.abs(100 * x));
  return text === "0.0" ? text : (x > 0 ? "+" : "−") + text;
}
export const count = (x) => (Number.isFinite(x) ? whole.format(x) : none);
export const compact = (x) =>
  !Number.isFinite(x) ? none : x < 10000 ? whole.format(x) : short.format(x);
export const interval = (low, high) =>
  Number.isFinite(low) && Number.isFinite(high)
    ? `${one.format(100 * low)}–${one.format(100 * high)}`
    : "";

export function small(x) {
  if (!Number.isFinite(x)) return none;
  if (x === 0) return "0";
  return x < 0.001 ? x.toExponential(1).replace("-", "−") : x.toPrecision(2);
}

export function rate(x) {
  if (!Number.isFinite(x)) return none;
  return x < 100 && x > 0 ? one.format(x) : compact(x);
}

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return none;
  const s = Math.max(0, seconds);
  if (s < 0.0005) return `${Math.round(s * 1e6)} µs`;
  if (s < 0.9995) return `${(s * 1000).toPrecision(s < 0.1 ? 2 : 3)} ms`;
  if (s < 10) return `${one.format(s)} s`;
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 129600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

// age is a duration for a column: whole seconds, "now" below two.
export function age(seconds) {
  if (!Number.isFinite(seconds)) return none;
  return seconds < 2 ? "now" : seconds < 10 ? `${Math.floor(seconds)} s` : duration(seconds);
}

export function bytes(n) {
  if (!Number.isFinite(n) || n <= 0) return none;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  while (n >= 1024 && u < units.length - 1) { n /= 1024; u++; }
  return `${n < 10 && u > 0 ? one.format(n) : whole.format(n)} ${units[u]}`;
}

// time is a moment to the second, in the zone that every page names.
export const time = (text) => moment(text, true);

// timeBeside is the time of one of two moments, with milliseconds where the seconds do
// not tell them apart.
export function timeBeside(text, other) {
  const at = Date.parse(text), words = time(text);
  if (!Number.isFinite(at) || words !== time(other) || at === Date.parse(other)) return words;
  return `${words}.${String(at % 1000).padStart(3, "0")}`;
}

// Names for people of communities and classes; an object would know the community __proto__.
let names = new Map(), classNames = new Map();

// namer takes the names for people that the server has.
export function namer(info) {
  names = new Map(Object.entries(info.display.communities));
  classNames = new Map(Object.entries(info.display.classes));
}

// named is the name of a community for people: the configuration's, or that of the log. Differences
// are named as in the texts of alerts.
export function named(community) {
  const sides = /^difference\(([^,]+), (.+)\)$/.exec(community);
  return sides ? `${named(sides[1])} less ${named(sides[2])}` : names.get(community) || community;
}

// classNamed is the name of a class for people: the configuration's, or that of the log, of which a
// bare number becomes "class 1".
export const classNamed = (name) =>
  classNames.get(name) || (/^\d+$/.test(name) ? `class ${name}` : name);

// tick is a number at an axis.
export const tick = (x) => (x < 10 ? String(+x.toFixed(2)) : compact(x));

// flag splits a flag into its name and a detail that names classes: "thin:0,3"
// or "ill-conditioned:2~5".
export function flag(text, classes) {
  const cut = text.indexOf(":");
  if (cut < 0) return { name: text, detail: "" };
  const named = text.slice(cut + 1).replace(/\d+/g, (d) => classes[Number(d)] ?? d);
  return { name: text.slice(0, cut), detail: named.replaceAll(",", ", ").replaceAll("~", " ~ ") };
}
