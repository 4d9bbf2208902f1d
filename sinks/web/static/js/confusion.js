// Which class the classifier takes for which: the labels by true class and by the prediction of
// their time, over all, by community and by period.

import { h } from "./dom.js";
import { community } from "./address.js";
import { count, named, percent } from "./format.js";
import { moment } from "./time.js";

const classesMost = 8; // of a matrix; with more classes the mistakes are listed
const mistakesMost = 12;
const fewLabels = 30; // below it a share says little
const communitiesShown = 12;

const sum = (list) => list.reduce((a, b) => a + b, 0);
const total = (counts) => sum(counts.map(sum));
const right = (counts) => sum(counts.map((row, k) => row[k]));

// mistakes lists the pairs of different classes with labels, the most frequent first.
function mistakes(counts) {
  const list = counts.flatMap((row, truth) => row.map((n, said) => ({ truth, said, n,
    of: sum(row) })));
  return list.filter((m) => m.truth !== m.said && m.n > 0).sort((a, b) => b.n - a.n);
}

// worst names the most frequent mistake in words.
function worst(counts, labels) {
  const [m] = mistakes(counts);
  if (!m) return "none";
  return `${labels[m.truth]} taken for ${labels[m.said]}, ${count(m.n)} of ${count(m.of)}`;
}

const table = (heads, rows) => h("table", { class: "figures" },
  h("thead", {}, h("tr", {}, heads.map((t) => h("th", { scope: "col" }, t)))),
  h("tbody", {}, rows));

// matrix has a row for each true class and a column for each predicted one.
function matrix(counts, labels) {
  const heads = ["True class", ...labels.map((l) => `Predicted ${l}`), "Labels"];
  return table(heads, counts.map((row, truth) => h("tr", {},
    h("th", { scope: "row" }, labels[truth]),
    row.map((n, said) => h("td", { "data-head": `Predicted ${labels[said]}`,
      class: said === truth && "agreed" },
    sum(row) ? `${percent(n / sum(row))} (${count(n)})` : "–")),
    h("td", { "data-head": "Labels" }, count(sum(row))))));
}

// list has a row for each of the most frequent mistakes.
function list(counts, labels) {
  const rows = mistakes(counts).slice(0, mistakesMost);
  if (!rows.length) return h("p", { class: "quiet" }, "No label contradicts its prediction.");
  return table(["True class", "Predicted", "Labels", "Of the class"], rows.map((m) =>
    h("tr", {}, h("th", { scope: "row" }, labels[m.truth]),
      h("td", { "data-head": "Predicted" }, labels[m.said]),
      h("td", { "data-head": "Labels" }, count(m.n)),
      h("td", { "data-head": "Of the class" }, percent(m.n / m.of)))));
}

// summary is a row about some labels: how many, how many right, and the most frequent mistake.
function summary(head, counts, labels) {
  const n = total(counts);
  return h("tr", {}, h("th", { scope: "row" }, head),
    h("td", { "data-head": "Labels" }, count(n)),
    h("td", { "data-head": "Right" }, n ? percent(right(counts) / n) : "–",
      n > 0 && n < fewLabels && h("small", {}, " few labels")),
    h("td", { "data-head": "Most frequent mistake" }, worst(counts, labels)));
}

const heads = (first) => [first, "Labels", "Right", "Most frequent mistake"];

// explained says in words what is counted.
function explained({ version, floor }) {
  return h("p", { class: "quiet" },
    "Each row has the labelled people of one class, and the class that the classifier " +
    `${version ? `(version ${version}) ` : ""}found likeliest for them when they were labelled. `,
    floor > 1 && `Counts are rounded to multiples of ${floor}, for privacy. `);
}

// confusion returns the parts of the page that show it, and draw, which fills them.
export function confusion(info) {
  const words = h("div"), whole = h("div", { class: "scroll confusion" });
  const communities = h("div", { class: "scroll" }), periods = h("div", { class: "scroll" });
  const past = h("div", {}, h("h3", {}, "Over time"), periods);
  let chosen = "", last = null;
  const select = h("select", { "aria-label": "Labels of", onchange: () => {
    chosen = select.value;
    show();
  } });

  function show() {
    const one = last.communities.find((c) => c.community === chosen);
    const counts = one?.counts ?? last.all;
    if (!total(counts)) {
      whole.replaceChildren(h("p", { class: "quiet" }, "No label has a prediction yet."));
    } else {
      whole.replaceChildren((counts.length <= classesMost ? matrix : list)(counts, info.labels));
    }
  }

  function draw(found) {
    last = found;
    if (!found.communities.some((c) => c.community === chosen)) chosen = "";
    words.replaceChildren(explained(found));
    select.replaceChildren(h("option", { value: "" }, "All labels"),
      ...found.communities.map((c) => h("option",
        { value: c.community, selected: c.community === chosen }, named(c.community))));
    show();
    communities.replaceChildren(table(heads("Community"),
      found.communities.slice(0, communitiesShown).map((c) => summary(
        h("a", { href: community(c.community) }, named(c.community)), c.counts, info.labels))));
    past.hidden = found.periods.length === 0; // labels may have no times
    periods.replaceChildren(table(heads("Labelled"), found.periods.map((p) => summary(
      p.from === p.to ? moment(p.from) : `${moment(p.from)} to ${moment(p.to)}`,
      p.counts, info.labels))));
  }

  return { draw, parts: [words, h("p", {}, select), whole, h("h3", {}, "By community"),
    communities, past] };
}
