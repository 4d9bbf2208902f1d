// Draws of people to label: the gain of a number of labels, the draw as a file to fill in, and
// the upload of the answers.

import { apiURL, get } from "./api.js";
import { h, setText, download } from "./dom.js";
import { classNamed, count, one, percent } from "./format.js";

const shown = 10;
const countMax = 100000;

// csv is the file that gqlstream ask writes.
function csv(rows) {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const line = (r) => [quoted(r.vertex), quoted(r.label ?? ""), r.role,
    Number(r.pi.toPrecision(6))].join();
  return `${["vertex,label,role,pi", ...rows.map(line)].join("\n")}\n`;
}

const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// table shows the first of the drawn people.
function table(list) {
  const more = list.length - shown;
  return [
    h("table", { class: "plain-table" },
      h("thead", {}, h("tr", {}, h("th", {}, "Vertex"), h("th", {}, "Drawn with"))),
      h("tbody", {}, list.slice(0, shown).map((r) => h("tr", {},
        h("th", { scope: "row" }, r.vertex), h("td", {}, percent(r.pi)))))),
    more > 0 && h("p", { class: "quiet" }, `and ${count(more)} more`),
  ];
}

// gains describe the gain of the draw, and of other numbers of labels.
function gains(list) {
  const width = (o) => `± ${one.format(100 * o.half_width)} points`;
  return [
    ...list.offers.map((o) => h("p", {}, h("b", {}, width(o)),
      ` (90 %, the widest class) with ${count(o.labels)} labels.`)),
    h("ul", { class: "offers" }, list.others.map((o) =>
      h("li", {}, `${count(o.labels)} labels: ${width(o)}`))),
    ...list.advice.map((a) => h("p", {}, `${percent(a.share)} of the uncertainty comes from the ` +
      `labels of ${classNamed(a.name)}, of which ${count(a.effective)} count here. With ` +
      `${count(a.more)} more near this community that part is half as large.`)),
  ];
}

// answers takes the file with the labels filled in.
function answers(info) {
  const state = h("p", { class: "quiet", role: "status" });
  const file = h("input", {
    type: "file",
    accept: ".csv,text/csv",
    "aria-label": "Answers as CSV",
  });
  async function send() {
    if (!file.files.length) return;
    setText(state, "Publishing …");
    try {
      const reply = await fetch(apiURL("/api/v1/labels"), { method: "POST",
        headers: { "Content-Type": "text/csv" }, body: await file.files[0].text() });
      const body = await reply.json().catch(() => ({}));
      if (!reply.ok) throw new Error(body.error || `the server answered ${reply.status}`);
      setText(state, `${count(body.published)} labels are published. The estimate follows.`);
    } catch (err) {
      setText(state, `Not published: ${err.message}`);
    }
    file.value = "";
  }
  file.addEventListener("change", send);
  return h("div", { class: "answers", hidden: !info.answers },
    h("label", {}, "Answers: the file with the column label filled in ", file), state);
}

export function whom(name, info) {
  const budget = h("input", { type: "number", min: 1, max: countMax, value: 50, required: true });
  const note = h("p", { class: "quiet", role: "status" }), out = h("div", { class: "drawn" });
  const form = h("form", { class: "whom-form", onsubmit: ask },
    h("label", { class: "pick" }, h("span", {}, "Labels"), budget),
    h("button", { type: "submit", class: "plain" }, "Draw"));
  const el = h("details", { class: "card whom" }, h("summary", {}, "Which vertices shall I label?"),
    h("p", {}, "Labels of members drawn at random give an estimate that rests on no " +
      "assumption, and test the estimate above. Ask for labels when the " +
      "evidence is old, when opinions may have changed, or when a red flag is shown."),
    form, note, out, answers(info));

  async function ask(event) {
    event.preventDefault();
    setText(note, "Drawing …");
    out.replaceChildren();
    try {
      const path = `/api/v1/communities/${encodeURIComponent(name)}/ask`;
      const list = await get(path, { count: budget.value });
      setText(note, "");
      out.replaceChildren(...answer(list));
    } catch (err) {
      setText(note, err.message);
    }
  }

  function answer(list) {
    const state = info.state ? ` --state ${shell(info.state)}` : "";
    const draw = `gqlstream ask${state} --community ${shell(name)} --count ${budget.value} ` +
      "--out questions.csv";
    const to = info.nats ? ` --nats ${info.nats}` : state;
    const blob = () => new Blob([csv(list.vertices)], { type: "text/csv" });
    const save = h("button", { type: "button", class: "plain",
      onclick: () => download(`${name}-questions.csv`, blob()) }, "Save as CSV");
    const drawn = list.vertices.length > 0 ? [
      h("p", {}, `${count(list.fresh)} vertices to label, drawn at position ` +
        `${count(list.position)}: `, save), ...table(list.vertices),
      h("p", {}, info.answers ? "Fill in the column label, and choose the file below."
        : "Fill in the column label and publish the file. The same from a terminal:"),
    ] : [h("p", {}, "The page names vertices only if privacy.min_members is 0 or 1. A person who " +
      "may read the state directory draws the file from a terminal:")];
    const when = list.when.map((t) => h("p", {},
      `${t.now ? "Label now" : "No need to label now"}: ${t.reason}.`));
    return [...when, ...gains(list), ...drawn, h("pre", { class: "command" },
      `${draw}\ngqlstream publish${to} --labels questions.csv`)].filter(Boolean);
  }
  return { el };
}
