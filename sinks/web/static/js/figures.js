// The figures of a community: its share in large type, its evidence, the table of classes, and
// the meaning of its flags.

import { h, setText } from "./dom.js";
import {
  percent,
  points,
  interval,
  count,
  compact,
  small,
  time,
  duration,
  none,
} from "./format.js";
import { cards } from "./flags.js";
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
  Number.isFinite(e.evidence_age) && ["Last heard, on average", `${duration(e.evidence_age)} ago`],
  Number.isFinite(e.fresh) && ["Weight of the predictions by age", percent(e.fresh)],
  Number.isFinite(e.label_age) && ["Median age of the labels", duration(e.label_age)],
  Number.isFinite(e.label_freshness) && ["Labels still true", percent(e.label_freshness)],
].filter(Boolean);

const columns = ["Class", "Share", "Interval", "News", "Std. error", "Labels", "Plain count"];
const titles = columns.map((c) => meanings[c]);

export function figures(info) {
  const share = h("strong", { class: "share" }),
    named = h("span", { class: "of" }),
    range = h("span", { class: "range" }),
    moved = h("span", { class: "moved" });
  const shares = bar(info), facts = h("dl", { class: "facts" }), more = h("dl", { class: "facts" });
  const body = h("tbody"), flags = h("div", { class: "flags" });
  const head = h(
    "div",
    { class: "card head-card" },
    h("p", { class: "hero" }, share, h("span", { class: "words" }, named, range, moved)),
    shares.el,
    facts,
    h(
      "details",
      { class: "meanings" },
      h("summary", {}, "More figures and their meaning"),
      more,
      h(
        "dl",
        { class: "terms" },
        Object.entries(meanings).map(([term, text]) =>
          h("div", {}, h("dt", {}, term), h("dd", {}, text)),
        ),
      ),
    ),
  );
  const table = h(
    "div",
    { class: "card scroll" },
    h(
      "table",
      { class: "figures" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((c, i) => h("th", { scope: "col", title: titles[i] || undefined }, c)),
        ),
      ),
      body,
    ),
  );

  function pairs(list, rows) {
    if (list.children.length === 0)
      list.append(
        ...rows.map(([term]) => h("div", { title: meanings[term] }, h("dt", {}, term), h("dd"))),
      );
    rows.forEach(([, value], i) => setText(list.children[i].lastChild, value));
  }

  function drawHead(e, k, day) {
    const known = !e.suppressed && Number.isFinite(e.prevalence?.[k]);
    setText(share, known ? percent(e.prevalence[k]) : "not published");
    setText(named, known ? info.labels[k] : "below the privacy floor");
    const bounds = known && interval(e.low?.[k], e.high?.[k]);
    const confidence = Math.round(100 * (e.confidence || 0.9));
    setText(range, bounds ? `${confidence} % interval ${bounds} %` : "");
    setText(
      moved,
      known && day && Number.isFinite(day.change)
        ? `news moved it ${points(day.change)} points in ${duration(day.seconds)}`
        : "",
    );
    shares.set(e.prevalence);
    const shown = (value) => (e.suppressed ? none : value);
    pairs(facts, [
      ["Members", shown(count(e.members))],
      ["Labelled", shown(count(e.labelled))],
      ["Predicted", shown(percent(e.coverage))],
      ...fresh(e),
      ["Log time", e.time ? time(e.time) : none],
    ]);
    pairs(more, [
      ["Certificate", shown(small(e.certificate))],
      ["λ", shown((e.lambda ?? 0).toFixed(2))],
      ["Model", e.model_version || none],
      [
        "Incoming model",
        e.model_incoming
          ? `${e.model_incoming}, covers ${percent(e.model_incoming_coverage)}`
          : none,
      ],
      ["Position", count(e.position)],
    ]);
  }

  function drawTable(e, before, pcc) {
    while (body.children.length < info.classes.length) {
      const i = body.children.length;
      body.append(
        h(
          "tr",
          {},
          h(
            "th",
            { scope: "row" },
            h("i", { class: `dot ${colour(info.slots[i])}` }),
            info.labels[i],
          ),
          columns.slice(1).map((c) => h("td", { "data-head": c })),
        ),
      );
    }
    info.classes.forEach((_, i) => {
      const change = e.moved?.[i] ?? (before ? e.prevalence?.[i] - before.prevalence?.[i] : NaN);
      const error = e.se_change?.[i];
      const values = [
        percent(e.prevalence?.[i]),
        interval(e.low?.[i], e.high?.[i]) || none,
        points(change) +
          (Number.isFinite(change) && Number.isFinite(error)
            ? ` ± ${(100 * error).toFixed(1)}`
            : ""),
        percent(e.se?.[i]),
        compact(e.n_eff?.[i]),
        pcc ? percent(pcc.prevalence?.[i]) : none,
      ];
      values.forEach((v, c) => setText(body.children[i].children[c + 1], v));
    });
  }

  let flagsShown = null;
  function drawFlags(e) {
    const key = (e.flags || []).join(" ");
    if (key !== flagsShown) flags.replaceChildren(...cards(e.flags, info));
    flagsShown = key;
  }

  return {
    head, table, flags,
    set(e, before, pcc, k, day) { drawHead(e, k, day); drawTable(e, before, pcc); drawFlags(e); },
  };
}
