// Up to five lines in one chart: this community, and others or other methods.

import { get } from "./api.js";
import { h, setText } from "./dom.js";
import { named } from "./format.js";
import { colour } from "./palette.js";

export const linesMax = 5;
const suggestions = 20;

// read and write are a line as the address has it: "auto~Lyon cycling".
export const write = (line) => `${line.method}~${line.name}`;
export function read(text) {
  const cut = text.indexOf("~");
  return cut < 0 ? null : { method: text.slice(0, cut), name: text.slice(cut + 1) };
}

// chips shows the lines of a chart, each with a button that removes it, except the first, which
// the page is about.
function chips(onRemove) {
  const el = h("div", { class: "toggles", role: "group", "aria-label": "Lines in the chart",
    hidden: true });

  const remove = (l, i) => h("button", { type: "button", class: "remove",
    "aria-label": `Remove ${named(l.name)}, ${l.method}`, onclick: () => onRemove(i) }, "×");
  const link = (l) => h("a", { href: `#/c/${encodeURIComponent(l.name)}` }, named(l.name));
  const chip = (l, i) => h("span", { class: `toggle line ${colour(i)}` },
    h("i"),
    i > 0 ? link(l) : h("span", {}, named(l.name)),
    h("small", {}, l.method),
    h("b", {}, l.missing || l.text),
    i > 0 && remove(l, i));

  function set(lines) {
    el.hidden = lines.length < 2;
    el.replaceChildren(...(el.hidden ? [] : lines.map(chip)));
  }
  return { el, set };
}

// names returns a field for the name of a community, with suggestions.
function names() {
  const options = h("datalist", { id: "names" });
  const input = h("input", {
    type: "text",
    list: "names",
    placeholder: "Another community",
    "aria-label": "Community to compare with",
    maxlength: 256,
    autocomplete: "off",
    spellcheck: "false",
  });
  let typing = 0;
  async function suggest() {
    try {
      const list = await get("/api/v1/communities", { q: input.value, limit: suggestions });
      options.replaceChildren(
        ...list.communities.map((row) => h("option", { value: row.name }, named(row.name))),
      );
    } catch { /* there are no suggestions, then */ }
  }
  input.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(suggest, 150);
  });
  return { input, options, stop() { clearTimeout(typing); } };
}

// compare returns the chips of the lines, and a form to add one. onChange gets the new list of
// other lines.
export function compare(name, onChange) {
  let others = [], methods = [], current = "";
  const which = names(), list = chips((i) => onChange(others.filter((_, n) => n !== i - 1)));
  const method = h("select", { "aria-label": "Method to compare with" });
  const note = h("span", { class: "quiet", role: "status" });
  const form = h("form", { class: "compare-form", hidden: true, onsubmit: add },
    which.input, method, which.options, h("button", { type: "submit", class: "plain" }, "Add"),
    note);
  const open = h("button", { type: "button", class: "plain", "aria-expanded": "false",
    onclick: () => show(form.hidden) }, "Compare");

  function show(on) {
    form.hidden = !on;
    open.setAttribute("aria-expanded", String(on));
    if (on) which.input.focus();
  }

  function add(event) {
    event.preventDefault();
    const line = { name: which.input.value.trim() || name, method: method.value };
    const lines = [{ name, method: current }, ...others];
    if (lines.some((o) => write(o) === write(line))) {
      setText(note, "It is in the chart already.");
      return;
    }
    if (lines.length >= linesMax) {
      setText(note, `At most ${linesMax} lines.`);
      return;
    }
    which.input.value = "";
    setText(note, "");
    onChange([...others, line]);
  }

  // set shows the lines: each {name, method, text, missing}. own are the methods of the community,
  // and shown is the one that its page shows.
  function set(lines, own, shown) {
    others = lines.slice(1).map((l) => ({ name: l.name, method: l.method }));
    if (methods.join() !== own.join())
      method.replaceChildren(
        ...own.map((m) => h("option", { value: m, selected: m === shown }, m)),
      );
    [methods, current] = [own, shown];
    list.set(lines);
  }

  return { open, form, chips: list.el, set, stop: which.stop };
}
