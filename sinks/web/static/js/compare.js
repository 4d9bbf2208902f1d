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

// compare returns the chips of the lines, and a form to add one. onChange gets the new list of
// other lines.
export function compare(name, onChange) {
  let others = [], methods = [];
  const options = h("datalist", { id: "names" });
  const which = h("input", {
    type: "text",
    list: "names",
    placeholder: "Another community",
    "aria-label": "Community to compare with",
    maxlength: 256,
    autocomplete: "off",
    spellcheck: "false",
  });
  const method = h("select", { "aria-label": "Method to compare with" });
  const note = h("span", { class: "quiet", role: "status" });
  const form = h("form", { class: "compare-form", hidden: true, onsubmit: add },
    which, method, options, h("button", { type: "submit", class: "plain" }, "Add"), note);
  const open = h(
    "button",
    { type: "button", class: "plain", "aria-expanded": "false", onclick: () => show(form.hidden) },
    "Compare",
  );
  const chips = h("div", {
    class: "toggles",
    role: "group",
    "aria-label": "Lines in the chart",
    hidden: true,
  });

  function show(open_) {
    form.hidden = !open_;
    open.setAttribute("aria-expanded", String(open_));
    if (open_) which.focus();
  }

  function add(event) {
    event.preventDefault();
    const line = { name: which.value.trim() || name, method: method.value };
    const known = [{ name, method: methods.current }, ...others].some(
      (o) => write(o) === write(line),
    );
    if (known) { setText(note, "It is in the chart already."); return; }
    if (others.length >= linesMax - 1) { setText(note, `At most ${linesMax} lines.`); return; }
    which.value = "";
    setText(note, "");
    onChange([...others, line]);
  }

  let typing = 0;
  which.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(async () => {
      try {
        const list = await get("/api/v1/communities", { q: which.value, limit: suggestions });
        options.replaceChildren(
          ...list.communities.map((row) => h("option", { value: row.name }, named(row.name))),
        );
      } catch { /* there are no suggestions, then */ }
    }, 150);
  });

  // set shows the lines: each {name, method, text, missing}; the first is the page's own.
  function set(lines, own, current) {
    others = lines.slice(1).map((l) => ({ name: l.name, method: l.method }));
    if (methods.join() !== own.join())
      method.replaceChildren(
        ...own.map((m) => h("option", { value: m, selected: m === current }, m)),
      );
    methods = Object.assign([...own], { current });
    chips.hidden = lines.length < 2;
    chips.replaceChildren(
      ...(lines.length < 2 ? [] : lines).map((l, i) =>
        h(
          "span",
          { class: `toggle line ${colour(i)}` },
          h("i"),
          i
            ? h("a", { href: `#/c/${encodeURIComponent(l.name)}` }, named(l.name))
            : h("span", {}, named(l.name)),
          h("small", {}, l.method),
          h("b", {}, l.missing || l.text),
          i > 0 &&
            h(
              "button",
              {
                type: "button",
                class: "remove",
                "aria-label": `Remove ${named(l.name)}, ${l.method}`,
                onclick: () => onChange(others.filter((_, n) => n !== i - 1)),
              },
              "×",
            ),
        ),
      ),
    );
  }

  return { open, form, chips, set, stop() { clearTimeout(typing); } };
}
