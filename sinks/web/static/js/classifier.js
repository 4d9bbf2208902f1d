// The classifier: how right it is by class, how that changed, which communities it has
// predicted, and where labels are needed next.

import { get } from "./api.js";
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

export function classifier(info) {
  const note = h("p", { class: "note" }, "Loading …");
  const versions = h("div"), history = h("div", { class: "small-chart wide" });
  const coverage = h("tbody"), advice = h("ul", { class: "advice" });
  const since = h("p", { class: "quiet" });
  const body = h(
    "div",
    { hidden: true },
    h(
      "div",
      { class: "card" },
      h("h2", {}, "How right is it?"),
      h(
        "p",
        { class: "quiet" },
        "Each label is compared with the earlier prediction of its vertex. ",
        "Newer labels count more.",
      ),
      versions,
    ),
    h("div", { class: "card" }, h("h2", {}, "Accuracy over time"), since, history),
    h(
      "div",
      { class: "card scroll" },
      h("h2", {}, "Communities with the fewest predictions"),
      h(
        "table",
        { class: "figures" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["Community", "Predicted", "Labels that count", "Flags"].map((t) =>
              h("th", { scope: "col" }, t),
            ),
          ),
        ),
        coverage,
      ),
    ),
    h("div", { class: "card" }, h("h2", {}, "Next labels"), advice),
  );
  const el = h("section", { class: "classifier-page" },
    h("div", { class: "bar-tools" }, h("h1", {}, "Classifier")), note, body);
  let timer = 0, gone = false, shown = null;

  const labelOf = (name) => info.labels[info.classes.indexOf(name)] ?? name;

  function drawVersions(models) {
    versions.replaceChildren(...models.toReversed().map((m) => {
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
  function drawHistory(answer) {
    const timed = answer.history.filter((j) => j.time);
    setText(since, `Since this process began, ${moment(answer.started)} (${zone()}).`);
    const points = timed.map((j) => ({ at: Date.parse(j.time) / 1000,
      e: { prevalence: j.accuracy.map((a) => a ?? NaN), low: [], high: [] } }));
    if (points.length < 2) {
      history.replaceChildren(h("p", { class: "quiet" }, "No label was judged since."));
      return;
    }
    const marks = timed.filter((j, i) => i > 0 && j.version !== timed[i - 1].version)
      .map((j) => ({ at: Date.parse(j.time) / 1000, kind: "model", text: `model ${j.version}` }));
    history.replaceChildren(
      h(
        "ul",
        { class: "legend" },
        info.labels.map((name, k) => h("li", {}, h("i", { class: colour(info.slots[k]) }), name)),
      ),
      picture({
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
      }),
    );
  }

  function drawCoverage(list) {
    coverage.replaceChildren(...list.map(({ name, estimate: e }) => h("tr", {},
      h("th", { scope: "row" }, h("a", { href: community(name) }, named(name))),
      h("td", { "data-head": "Predicted" }, percent(e.coverage)),
      h("td", { "data-head": "Labels that count" }, e.n_eff?.length
        ? compact(Math.min(...e.n_eff)) : "–"),
      h("td", { "data-head": "Flags" }, chips(e.flags, info)))));
  }

  // drawAdvice names communities with doubtful or old estimates, and classes with few labels.
  function drawAdvice(models, grave) {
    const weak = models.at(-1)?.classes.filter((c) => c.judged < judgedFew) ?? [];
    const rows = [
      ...weak.map((c) => `Label more people of the class ${labelOf(c.class)}: so far ` +
        `${count(c.judged)} of them judged the classifier.`),
      ...grave.map(({ name, estimate: e }) => [h("a", { href: community(name) }, named(name)),
        ": draw members and label them. ", chips(e.flags, info, 3)]),
    ];
    advice.replaceChildren(...(rows.length ? rows : ["Nothing is urgent."])
      .map((r) => h("li", {}, r)));
  }

  async function load() {
    clearTimeout(timer);
    try {
      const [answer, fewest, all] = await Promise.all([get("/api/v1/classifier"),
        get("/api/v1/communities", { sort: "coverage", limit: communitiesShown }),
        get("/api/v1/communities", { flag: "any", sort: "members", order: "desc", limit: 100 })]);
      shown = answer;
      note.hidden = answer.models.length > 0;
      setText(note, "No label has a prediction yet, so the accuracy of the classifier is unknown.");
      body.hidden = false;
      drawVersions(answer.models);
      drawHistory(answer);
      drawCoverage(fewest.communities.filter((row) => !row.estimate.suppressed));
      const asks = new Set(
        info.flags
          .filter((f) => f.severity === "wrong" || f.name === "old-evidence")
          .map((f) => f.name),
      );
      drawAdvice(answer.models, all.communities.filter((row) =>
        row.estimate.flags.some((f) => asks.has(f.split(":")[0]))).slice(0, communitiesShown));
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
    theme() { if (shown) drawHistory(shown); },
    unmount() { gone = true; clearTimeout(timer); },
  };
}
