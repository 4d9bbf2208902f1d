// One row of the list of communities.

import { h, setText, setAttr } from "./dom.js";
import { community } from "./address.js";
import { percent, points, interval, compact, age, duration, named } from "./format.js";
import { bar, whisker, trend } from "./marks.js";
import { chips } from "./flags.js";
import { distinct } from "./palette.js";
import { moment } from "./time.js";

// movement says by how much a share moved, with its error, and since when.
export function movement(row) {
  const moved = row.moved ?? row.change;
  if (moved === undefined) return { text: "", title: "" };
  const error = row.moved_se ? ` ± ${(100 * row.moved_se).toFixed(1)}` : "";
  return {
    text: points(moved) + error,
    title: `News since ${moment(row.since)}, in points, with its standard error. The published ` +
      `share changed by ${points(row.change)}; the rest was learned of the classifier.`,
  };
}

// evidence gives the age of the newest change of the figures, and of their evidence.
export function evidence(row, now) {
  const since = Date.parse(row.evident ?? row.updated);
  const observed = row.estimate.evidence_age;
  return {
    text: age((now - since) / 1000),
    title: `Nothing visible has changed since ${moment(row.evident ?? row.updated)}.` +
      (Number.isFinite(observed)
        ? ` Its members were last observed ${duration(observed)} ago, on average.`
        : ""),
  };
}

function cells(info) {
  return {
    link: h("a", { class: "name" }), shares: bar(info), range: whisker(), line: trend(),
    change: h("small"), value: h("strong"), bounds: h("small"), members: h("span"),
    flags: h("span", { class: "chips" }), updated: h("span"),
  };
}

// makeRow builds one row; set fills it, or empties it while it is not known.
export function makeRow(info, method) {
  const c = cells(info);
  const cell = (name, ...children) => h("div", { role: "cell", class: `c-${name}` }, children);
  const el = h("div", { class: "row", role: "row" },
    cell("community", c.link), cell("prevalence", c.shares.el), cell("share", c.value, c.bounds),
    cell("interval", c.range.el), cell("trend", c.line.el, c.change), cell("members", c.members),
    cell("flags", c.flags), cell("evidence", c.updated));
  let shownFlags = null;
  function set(row, k, now, span) {
    el.classList.toggle("loading", !row);
    if (!row) {
      setText(c.link, "");
      c.link.removeAttribute("href");
      return;
    }
    const e = row.estimate, slot = distinct(info.slots, [k]).get(k);
    el.classList.toggle("suppressed", Boolean(e.suppressed));
    setText(c.link, named(row.name) + (row.looks_like ? " (another name looks the same)" : ""));
    setAttr(c.link, "href", community(row.name, { class: k || "", method: method() }));
    setAttr(c.link, "title", row.name);
    c.shares.set(e.prevalence);
    setText(c.value, e.suppressed ? "not published" : percent(e.prevalence?.[k]));
    setText(c.bounds, interval(e.low?.[k], e.high?.[k]));
    c.range.set(e.prevalence?.[k], e.low?.[k], e.high?.[k], slot);
    c.line.set(row.trend, slot, span);
    for (const [node, words] of [[c.change, movement(row)], [c.updated, evidence(row, now)]]) {
      setText(node, words.text);
      setAttr(node, "title", words.title);
    }
    setText(c.members, e.suppressed ? "" : compact(e.members));
    const key = (e.flags || []).join(" ");
    if (key !== shownFlags) c.flags.replaceChildren(...chips(e.flags, info));
    shownFlags = key;
  }
  return { el, link: c.link, set };
}
