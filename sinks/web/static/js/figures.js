// The figures of a community: its share in large type, its evidence, the table of classes, and
// the meaning of its flags.

import { h, setText } from "./dom.js";
import {
  compact, count, duration, interval, none, percent, points, small, time,
} from "./format.js";
import { cards } from "./flags.js";
import { facts } from "./facts.js";
import { bar } from "./marks.js";
import { colour } from "./palette.js";

// meanings explain the figures, in tooltips and in a list.
const meanings = {
  Members: "total multiplicity of the community; the page does not name members",
  Predicted:
    "share of the members without a label that have a prediction; the others are taken to be alike",
  Certificate: "proven bound on our own numerical error; it is no part of the interval",
  λ: "share of closeness in the graph in the weights of the labels; 0: every label counts the same",
  Position: "place in the log; the same log gives the same estimate there",
  Interval: "the range that covers the true share nine times in ten (estimates[].confidence)",
  News:
    "change by new predictions, members and edges since the last estimate, in " +
    "points, with its standard error",
  "Std. error": "standard error of the share, in percentage points",
  Labels: "effective calibration labels behind the share; below 30 the estimate is thin",
  "Plain count": "mean prediction without adjustment (pcc)",
};

// fresh says how old the evidence is, where records say so.
const fresh = (e) => [
  Number.isFinite(e.evidence_age) &&
    ["Last observed, on average", `${duration(e.evidence_age)} ago`],
  Number.isFinite(e.fresh) && ["Weight of the predictions by age", percent(e.fresh)],
  Number.isFinite(e.label_age) && ["Median age of the labels", duration(e.label_age)],
  Number.isFinite(e.label_freshness) && ["Labels still true", percent(e.label_freshness)],
].filter(Boolean);

const columns = ["Class", "Share", "Interval", "News", "Std. error", "Labels", "Plain count"];
const titles = columns.map((c) => meanings[c]);

// terms lists the meanings.
const terms = () => h("dl", { class: "terms" }, Object.entries(meanings).map(([term, text]) =>
  h("div", {}, h("dt", {}, term), h("dd", {}, text))));

// mainFacts and moreFacts are the figures of a record, beside its shares.
function mainFacts(e) {
  const shown = (value) => (e.suppressed ? none : value);
  return [
    ["Members", shown(count(e.members))],
    ["Labelled", shown(count(e.labelled))],
    ["Predicted", shown(percent(e.coverage))],
    ...fresh(e),
    ["Log time", e.time ? time(e.time) : none],
  ];
}

function moreFacts(e) {
  const shown = (value) => (e.suppressed ? none : value);
  const incoming = `${e.model_incoming}, covers ${percent(e.model_incoming_coverage)}`;
  return [
    ["Certificate", shown(small(e.certificate))],
    ["λ", shown((e.lambda ?? 0).toFixed(2))],
    ["Model", e.model_version || none],
    ["Incoming model", e.model_incoming ? incoming : none],
    ["Position", count(e.position)],
  ];
}

// headCard is the share of a class in large type, with the evidence behind it.
function headCard(info) {
  const share = h("strong", { class: "share" }), named = h("span", { class: "of" });
  const range = h("span", { class: "range" }), moved = h("span", { class: "moved" });
  const shares = bar(info), main = facts(meanings), more = facts(meanings);
  const el = h("div", { class: "card head-card" },
    h("p", { class: "hero" }, share, h("span", { class: "words" }, named, range, moved)),
    shares.el,
    main.el,
    h("details", { class: "meanings" },
      h("summary", {}, "More figures and their meaning"), more.el, terms()));

  function set(e, k, day) {
    const known = !e.suppressed && Number.isFinite(e.prevalence?.[k]);
    setText(share, known ? percent(e.prevalence[k]) : "not published");
    setText(named, known ? info.labels[k] : "below the privacy floor");
    const bounds = known && interval(e.low?.[k], e.high?.[k]);
    const confidence = Math.round(100 * (e.confidence || 0.9));
    setText(range, bounds ? `${confidence} % interval ${bounds} %` : "");
    const news = known && day && Number.isFinite(day.change);
    setText(moved,
      news ? `news moved it ${points(day.change)} points in ${duration(day.seconds)}` : "");
    shares.set(e.prevalence);
    main.set(mainFacts(e));
    more.set(moreFacts(e));
  }
  return { el, set };
}

// classTable has a row of figures for each class.
function classTable(info) {
  const headings = columns.map((c, i) => h("th", { scope: "col", title: titles[i] }, c));
  const body = h("tbody");
  const row = (label, i) => h("tr", {},
    h("th", { scope: "row" }, h("i", { class: `dot ${colour(info.slots[i])}` }), label),
    columns.slice(1).map((c) => h("td", { "data-head": c })));
  const el = h("div", { class: "card scroll" },
    h("table", { class: "figures" }, h("thead", {}, h("tr", {}, headings)), body));

  // news is the change of a class since the record before, with its error.
  function news(e, before, i) {
    const change = e.moved?.[i] ?? (before ? e.prevalence?.[i] - before.prevalence?.[i] : NaN);
    const error = e.se_change?.[i];
    const both = Number.isFinite(change) && Number.isFinite(error);
    return points(change) + (both ? ` ± ${(100 * error).toFixed(1)}` : "");
  }

  function set(e, before, plain) {
    if (body.children.length === 0) body.append(...info.labels.map(row));
    [...body.children].forEach((line, i) => {
      const values = [
        percent(e.prevalence?.[i]),
        interval(e.low?.[i], e.high?.[i]) || none,
        news(e, before, i),
        percent(e.se?.[i]),
        compact(e.n_eff?.[i]),
        plain ? percent(plain.prevalence?.[i]) : none,
      ];
      values.forEach((v, c) => setText(line.children[c + 1], v));
    });
  }
  return { el, set };
}

// flagCards lists what the flags of a record mean.
function flagCards(info) {
  const el = h("div", { class: "flags" });
  let shown = null;
  function set(e) {
    const wanted = (e.flags || []).join(" ");
    if (wanted !== shown) el.replaceChildren(...cards(e.flags, info));
    shown = wanted;
  }
  return { el, set };
}

// figures returns the card of a community's head, the table of its classes and its flags. set gets
// the newest record, the one before it, the plain count, the class and the change of a day.
export function figures(info) {
  const head = headCard(info), table = classTable(info), flags = flagCards(info);
  return {
    head: head.el, table: table.el, flags: flags.el,
    set(e, before, plain, k, day) {
      head.set(e, k, day);
      table.set(e, before, plain);
      flags.set(e);
    },
  };
}
