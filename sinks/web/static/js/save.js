// Saves a chart: its rows as CSV, and the chart as PNG or SVG with a title, a source and
// a note; and says how to embed it.

import { apiURL } from "./api.js";
import { h, css, download, setText } from "./dom.js";
import { path } from "./history.js";
import { picture, pngBlob, svgBlob } from "./picture.js";

const pointsWanted = 1500;

const colours = () => ({ back: css("--card"), text: css("--text"), muted: css("--muted"),
  line: css("--line"), bad: css("--bad") });

// csvOf reads the rows of every line that is shown, and puts them into one table.
async function csvOf(lines, span) {
  const texts = await Promise.all(lines.map(async (line) => {
    const url = apiURL(`${path(line)}/history`);
    const asked = { method: line.method, points: pointsWanted, format: "csv", ...span };
    for (const [field, value] of Object.entries(asked)) {
      if (value) url.searchParams.set(field, value);
    }
    const reply = await fetch(url);
    if (!reply.ok) throw new Error(`${line.name}, ${line.method}: ${reply.status}`);
    return reply.text();
  }));
  const rows = texts.map((text, i) => (i ? text.slice(text.indexOf("\n") + 1) : text));
  return new Blob(rows, { type: "text/csv" });
}

// embedding returns a text and the code by which another site embeds a chart. draw gets what is
// shown and the texts of the form.
function embedding(info) {
  const code = h("textarea", { class: "command", readonly: true, rows: 3,
    "aria-label": "Code to embed the chart" });
  const el = h("div", { class: "embed-code", hidden: true });

  function draw(s, title, note, source) {
    el.hidden = false;
    if (!info.public.includes(s.name)) {
      el.replaceChildren(h("p", { class: "quiet" },
        "To embed this chart in another page, list the community in ",
        h("code", {}, "http.public"), " of the configuration."));
      return;
    }
    const url = apiURL(`/embed/${encodeURIComponent(s.name)}`);
    for (const [key, value] of Object.entries({ class: s.classes, title, note, source }))
      if (value) url.searchParams.set(key, value);
    code.value = `<iframe src="${url}" width="720" height="440" style="border:0" ` +
      `title="${(title || s.title).replaceAll('"', "&quot;")}"></iframe>`;
    el.replaceChildren(h("p", { class: "quiet" },
      "Code to embed the chart. The page around it must come from a web server, not from a file:"),
    code);
  }
  return { el, draw };
}

// saver returns a button and a form. shown() returns {lines, span, chart, name, title, source}:
// lines are {name, method}, span the time parameters of the history, chart the options of a
// picture.
export function saver(info, shown) {
  const field = (label) => h("input", { type: "text", "aria-label": label, maxlength: 200 });
  const title = field("Title"), note = field("Note"), source = field("Source");
  const state = h("span", { class: "quiet", role: "status" });
  const embed = embedding(info);
  const form = h("form", { class: "save-form", hidden: true, onsubmit: (e) => e.preventDefault() },
    h("label", {}, "Title", title), h("label", {}, "Note", note), h("label", {}, "Source", source),
    ["CSV", "PNG", "SVG"].map((kind) => h("button", { type: "button", class: "plain",
      title: `Save the chart as ${kind}`, onclick: () => save(kind) }, kind)),
    state, embed.el);
  const open = h("button", { type: "button", class: "plain", "aria-expanded": "false",
    onclick: () => show(form.hidden) }, "Save and share");
  const draw = (s) => embed.draw(s, title.value, note.value, source.value);
  form.addEventListener("input", () => draw(shown()));

  function show(on) {
    form.hidden = !on;
    open.setAttribute("aria-expanded", String(on));
    if (!on) return;
    const s = shown();
    title.placeholder = s.title;
    source.placeholder = s.source;
    draw(s);
    title.focus();
  }

  async function save(kind) {
    const s = shown();
    setText(state, "");
    try {
      if (kind === "CSV") return download(`${s.name}.csv`, await csvOf(s.lines, s.span));
      const node = picture({ ...s.chart, colours: colours(), title: title.value || s.title,
        note: note.value, source: source.value || s.source });
      const blob = kind === "SVG" ? svgBlob(node) : await pngBlob(node);
      return download(`${s.name}.${kind.toLowerCase()}`, blob);
    } catch (err) {
      return setText(state, `Not saved: ${err.message}`);
    }
  }
  return { open, form };
}
