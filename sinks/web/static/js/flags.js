// Flags in a reader's words: red where the number may be wrong, amber where it is wide or old, and
// grey where there is only something to know.

import { h } from "./dom.js";
import { flag } from "./format.js";

// explained returns the flags of an estimate, the gravest first, one of each kind.
export function explained(flags, info) {
  const seen = new Map();
  for (const text of flags ?? []) {
    const { name, detail } = flag(text, info.labels);
    if (!seen.has(name)) seen.set(name, { name, detail });
  }
  return [...seen.values()].map((f) => {
    const at = info.flags.findIndex((d) => d.name === f.name);
    const doc = info.flags[at] ?? { severity: "weak", title: f.name };
    return { ...f, doc, at: at < 0 ? info.flags.length : at };
  }).sort((a, b) => a.at - b.at);
}

// chip shows one flag; its title explains it.
export function chip({ name, detail, doc }) {
  const about = detail ? ` (${detail})` : "";
  const title = [`${doc.title}${about}: ${doc.meaning ?? name}.`,
    doc.action && `Action: ${doc.action}.`].filter(Boolean).join(" ");
  return h("span", { class: `chip ${doc.severity}`, title, "data-flag": name }, doc.title);
}

// chips returns a limited number of flags, and how many more there are. Flags that are only
// information are counted, as notes where nothing is graver. All but the first stay on one line.
export function chips(flags, info, most = 2) {
  const list = explained(flags, info);
  const grave = list.filter((f) => f.doc.severity !== "information").slice(0, most);
  const rest = list.length - grave.length;
  const others = list.slice(grave.length).map((f) => f.doc.title).join(", ");
  const more = grave.length ? `+${rest}` : rest === 1 ? "1 note" : `${rest} notes`;
  const [first, ...after] = [...grave.map(chip),
    rest > 0 && h("span", { class: "chip more", title: others }, more)].filter(Boolean);
  return [first, after.length > 0 && h("span", { class: "chip-rest" }, after)].filter(Boolean);
}

// cards explain every flag of an estimate, with advice.
export function cards(flags, info) {
  return explained(flags, info).map(({ name, detail, doc }) =>
    h("div", { class: `card flag ${doc.severity}` },
      h("h2", {}, doc.title, detail && h("span", {}, detail)),
      doc.meaning && h("p", {}, `${doc.meaning}.`),
      doc.action && h("p", { class: "action" }, h("b", {}, "Action: "), `${doc.action}.`),
      doc.exactly && h("details", { class: "exactly" }, h("summary", {}, `${name}, exactly`),
        h("p", {}, `${doc.exactly}.`))));
}

// choices are the options of a select of flags: by severity, then each.
export const choices = (info) => [["", "All"], ["any", "With a flag"],
  ...info.flags.map((f) => [f.name, f.title])];
