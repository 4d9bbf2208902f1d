// Which vertices shall I label? What a budget buys first, then the draw as a file to fill in.

import { get } from "./api.js";
import { h, setText, download } from "./dom.js";
import { count, one, percent } from "./format.js";

const shown = 10;
const countMax = 100000;

// csv is the file that gqlstream ask writes.
function csv(rows) {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return ["vertex,label,role,pi", ...rows.map((r) => [quoted(r.vertex), quoted(r.label ?? ""), r.role, Number(r.pi.toPrecision(6))].join())].join("\n") + "\n";
}

export function whom(name) {
  const budget = h("input", { type: "number", min: 1, max: countMax, value: 50, required: true });
  const note = h("p", { class: "quiet", role: "status" }), out = h("div", { class: "drawn" });
  const form = h("form", { class: "whom-form", onsubmit: ask },
    h("label", { class: "pick" }, h("span", {}, "Labels"), budget), h("button", { type: "submit", class: "plain" }, "Draw"));
  const el = h("details", { class: "card whom" }, h("summary", {}, "Which vertices shall I label?"),
    h("p", {}, "Labels of members that are drawn at random give an estimate that rests on no assumption, and show whether the one above can be believed."),
    form, note, out);

  async function ask(event) {
    event.preventDefault();
    setText(note, "Drawing …");
    out.replaceChildren();
    try {
      const list = await get(`/api/v1/communities/${encodeURIComponent(name)}/ask`, { count: budget.value });
      setText(note, "");
      out.replaceChildren(...answer(list));
    } catch (err) {
      setText(note, err.message);
    }
  }

  function answer(list) {
    const width = (o) => `± ${one.format(100 * o.half_width)} points`;
    const command = `gqlstream ask --community '${name.replaceAll("'", "'\\''")}' --count ${budget.value} --out questions.csv`;
    return [
      ...list.offers.map((o) => h("p", {}, h("b", {}, width(o)), ` (90 %, the widest class) with ${count(o.labels)} labels.`)),
      h("ul", { class: "offers" }, list.others.map((o) => h("li", {}, `${count(o.labels)} labels: ${width(o)}`))),
      ...list.advice.map((a) => h("p", {}, `Of the present interval, ${percent(a.share)} of the variance is from labels of class ${a.name}, of which ${count(a.effective)} count here; ${count(a.more)} more near this community halve that part.`)),
      list.vertices.length > 0 && h("p", {}, `${count(list.fresh)} vertices to label, drawn at position ${count(list.position)}: `,
        h("button", { type: "button", class: "plain", onclick: () => download(`${name}-questions.csv`, new Blob([csv(list.vertices)], { type: "text/csv" })) }, "Save as CSV")),
      list.vertices.length > 0 && h("table", { class: "plain-table" }, h("thead", {}, h("tr", {}, h("th", {}, "Vertex"), h("th", {}, "Drawn with"))),
        h("tbody", {}, list.vertices.slice(0, shown).map((r) => h("tr", {}, h("th", { scope: "row" }, r.vertex), h("td", {}, percent(r.pi)))))),
      list.vertices.length > shown && h("p", { class: "quiet" }, `and ${count(list.vertices.length - shown)} more`),
      h("p", {}, list.vertices.length > 0 ? "Fill in the column label and publish the file. The same from a terminal:" : "Names of vertices are only shown where privacy.min_members is 0 or 1. From a terminal:"),
      h("pre", { class: "command" }, `${command}\ngqlstream publish --labels questions.csv`),
    ].filter(Boolean);
  }
  return { el };
}
