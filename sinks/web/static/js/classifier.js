// The classifier: how right it is by class, how that changed, which communities it has
// predicted, and where labels are needed next.

import { get } from "./api.js";
import { confusion } from "./confusion.js";
import { h, css, setText } from "./dom.js";
import { community } from "./address.js";
import { compact, count, named, percent } from "./format.js";
import { chips } from "./flags.js";
import { colour, colourValue } from "./palette.js";
import { picture } from "./picture.js";
import { moment, zone } from "./time.js";

const refreshEvery = 5000;
const communitiesShown = 12;
const judgedFew = 30; // labels of a class, below which its accuracy says little

const pageColours = () => ({ back: css("--card"), text: css("--text"), muted: css("--muted"),
  line: css("--line"), bad: css("--bad") });

// verdict says in one sentence how a version does.
function verdict(m, labelOf) {
  if (m.degraded)
    return ["wrong", "It errs clearly more than with its first labels. Train it again."];
  if (!m.classes.length)
    return ["information", "No label has been compared with a prediction yet."];
  if (m.drift >= 0.5) return ["weak", "It may have become worse: label more to be sure."];
  const few = m.classes.filter((c) => c.judged < judgedFew);
  if (few.length) {
    return [
      "weak",
      `Fewer than ${judgedFew} labels judged the class ` +
        `${few.map((c) => labelOf(c.class)).join(" and the class ")}.`,
    ];
  }
  return ["good", "It is as right as with its first labels."];
}

const tone = (severity) => h("span", { class: `chip ${severity}` },
  { wrong: "worse", weak: "unsure", good: "fine", information: "not known" }[severity]);

// drawVersions draws a table of accuracies for each version, the newest first.
function drawVersions(el, models, labelOf) {
  el.replaceChildren(...models.toReversed().map((m) => {
    const [severity, words] = verdict(m, labelOf);
    return h("div", { class: "version" },
      h("h3", {}, `Version ${m.version || "without a name"} `, tone(severity)), h("p", {}, words),
      m.classes.length > 0 && h("table", { class: "figures" }, h("thead", {}, h("tr", {},
        ["True class", "Right", "At first", "Labels", "Brier score"].map((t) =>
          h("th", { scope: "col" }, t)))),
      h("tbody", {}, m.classes.map((c) => h("tr", {},
        h("th", { scope: "row" }, labelOf(c.class)),
        h("td", { "data-head": "Right" }, percent(c.accuracy)),
        h("td", { "data-head": "At first" }, percent(c.reference ?? NaN)),
        h("td", { "data-head": "Labels" }, count(c.judged)),
        h("td", { "data-head": "Brier score" }, c.brier.toFixed(2)))))));
  }));
}

// drawHistory draws the newest version's accuracy by class.
function drawHistory({ history, since }, info, answer) {
  const timed = answer.history.filter((j) => j.time);
  setText(since, `Since this process began, ${moment(answer.started)} (${zone()}).`);
  const points = timed.map((j) => ({ at: Date.parse(j.time) / 1000,
    e: { prevalence: j.accuracy.map((a) => a ?? NaN), low: [], high: [] } }));
  if (points.length < 2) {
    history.replaceChildren(h("p", { class: "quiet" }, "No label was judged since."));
    return;
  }
  history.replaceChildren(
    h(
      "ul",
      { class: "legend" },
      info.labels.map((name, k) => h("li", {}, h("i", { class: colour(info.slots[k]) }), name)),
    ),
    picture(accuracy(info, timed, points)),
  );
}

// accuracy returns the options of the picture of accuracies by class.
function accuracy(info, timed, points) {
  const marks = timed.filter((j, i) => i > 0 && j.version !== timed[i - 1].version)
    .map((j) => ({ at: Date.parse(j.time) / 1000, kind: "model", text: `model ${j.version}` }));
  return {
    lines: info.labels.map((label, k) => ({
      label,
      k,
      points,
      stroke: colourValue(info.slots[k]),
    })),
    marks,
    compact: true,
    width: 860,
    height: 220,
    title: "Accuracy by class",
    label: "Accuracy by class over time",
    colours: pageColours(),
  };
}

// drawCoverage draws a row for each community.
function drawCoverage(body, info, list) {
  body.replaceChildren(...list.map(({ name, estimate: e }) => h("tr", {},
    h("th", { scope: "row" }, h("a", { href: community(name) }, named(name))),
    h("td", { "data-head": "Predicted" }, percent(e.coverage)),
    h("td", { "data-head": "Labels that count" }, e.n_eff?.length
      ? compact(Math.min(...e.n_eff)) : "–"),
    h("td", { "data-head": "Flags" }, chips(e.flags, info)))));
}

// drawAdvice names communities with doubtful or old estimates, and classes with few labels.
function drawAdvice(el, info, labelOf, models, grave) {
  const weak = models.at(-1)?.classes.filter((c) => c.judged < judgedFew) ?? [];
  const rows = [
    ...weak.map((c) => `Label more people of the class ${labelOf(c.class)}: so far ` +
      `${count(c.judged)} of them judged the classifier.`),
    ...grave.map(({ name, estimate: e }) => [h("a", { href: community(name) }, named(name)),
      ": draw members and label them. ", chips(e.flags, info, 3)]),
  ];
  el.replaceChildren(...(rows.length ? rows : ["Nothing is urgent."])
    .map((r) => h("li", {}, r)));
}

// layout returns the parts of the page that are drawn, and body, which holds them.
function layout(mistakes) {
  const parts = {
    versions: h("div"),
    history: h("div", { class: "small-chart wide" }),
    since: h("p", { class: "quiet" }),
    coverage: h("tbody"),
    advice: h("ul", { class: "advice" }),
  };
  const heads = ["Community", "Predicted", "Labels that count", "Flags"];
  const card = (title, kind, ...children) =>
    h("div", { class: kind }, h("h2", {}, title), children);
  const help = h(
    "p",
    { class: "quiet" },
    "Each label is compared with the earlier prediction of its vertex. ",
    "Newer labels count more.",
  );
  const table = h(
    "table",
    { class: "figures" },
    h("thead", {}, h("tr", {}, heads.map((t) => h("th", { scope: "col" }, t)))),
    parts.coverage,
  );
  const body = h(
    "div",
    { hidden: true },
    card("How right is it?", "card", help, parts.versions),
    card("Which class does it take for which?", "card", mistakes.parts),
    card("Accuracy over time", "card", parts.since, parts.history),
    card("Communities with the fewest predictions", "card scroll", table),
    card("Next labels", "card", parts.advice),
  );
  return { ...parts, body };
}

const requests = () => Promise.all([
  get("/api/v1/classifier"),
  get("/api/v1/communities", { sort: "coverage", limit: communitiesShown }),
  get("/api/v1/communities", { flag: "any", sort: "members", order: "desc", limit: 100 }),
]);

// grave returns the rows with a flag that asks for labels.
function grave(info, rows) {
  const asks = new Set(
    info.flags
      .filter((f) => f.severity === "wrong" || f.name === "old-evidence")
      .map((f) => f.name),
  );
  return rows
    .filter((row) => row.estimate.flags.some((f) => asks.has(f.split(":")[0])))
    .slice(0, communitiesShown);
}

export function classifier(info) {
  const note = h("p", { class: "note" }, "Loading …");
  const mistakes = confusion(info);
  const parts = layout(mistakes);
  const el = h("section", { class: "classifier-page" },
    h("div", { class: "bar-tools" }, h("h1", {}, "Classifier")), note, parts.body);
  let timer = 0, gone = false, shown = null;

  const labelOf = (name) => info.labels[info.classes.indexOf(name)] ?? name;

  function draw([answer, fewest, all]) {
    shown = answer;
    const judged = answer.models.length > 0;
    const counted = answer.confusion.all.flat().some((n) => n > 0);
    note.hidden = judged || counted;
    setText(note, "No label has a prediction yet, so the accuracy of the classifier is unknown.");
    parts.body.hidden = false;
    drawVersions(parts.versions, answer.models, labelOf);
    if (!judged && counted) parts.versions.replaceChildren(h("p", {},
      "No label has come after a prediction of its vertex. The next table counts the labels by " +
        "the first prediction that followed."));
    mistakes.draw(answer.confusion);
    drawHistory(parts, info, answer);
    const open = fewest.communities.filter((row) => !row.estimate.suppressed);
    drawCoverage(parts.coverage, info, open);
    drawAdvice(parts.advice, info, labelOf, answer.models, grave(info, all.communities));
  }

  async function load() {
    clearTimeout(timer);
    try {
      draw(await requests());
    } catch (err) {
      note.hidden = false;
      setText(note, `No answer from the server: ${err.message}`);
    }
    if (!gone) timer = setTimeout(load, refreshEvery);
  }

  return {
    el, title: "Classifier", names: [],
    mounted() { load(); },
    refresh() { load(); },
    theme() { if (shown) drawHistory(parts, info, shown); },
    unmount() { gone = true; clearTimeout(timer); },
  };
}
