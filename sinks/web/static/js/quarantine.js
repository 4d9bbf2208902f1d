// The last refused events, with reason and remedy.

import { get } from "./api.js";
import { h, setText } from "./dom.js";
import { bytes, count, time } from "./format.js";

const shown = 10;

// quarantine returns a list; set(n) gets the number of refused events, and reads the list again
// when it has changed.
export function quarantine(info) {
  const list = h("div", { class: "entries" }), note = h("p", { class: "quiet", hidden: true });
  const el = h(
    "div",
    { class: "refused", hidden: true },
    h("h3", {}, "The last of them"),
    note,
    list,
  );
  let last = -1;
  const server = `--nats ${info.nats || "URL"}`;

  function entry(e) {
    const open = list.querySelector(`details[open][data-entry="${e.entry}"]`);
    return h(
      "details",
      { "data-entry": e.entry, open: Boolean(open) },
      h(
        "summary",
        {},
        `${e.entry} · ${e.kind} · `,
        h("b", {}, e.reason),
        ` · ${time(e.time)}`,
        e.retried && " · retried",
      ),
      h(
        "p",
        {},
        `${e.detail}. ${e.index < 0 ? "The whole message" : `Event ${e.index} of the message`} ` +
          `at position ${count(e.position)}, ${bytes(e.bytes)}.`,
      ),
      e.original && h("pre", {}, e.original),
      h("p", {}, "Show the whole entry, and publish it again with corrections:"),
      h(
        "pre",
        { class: "command" },
        `gqlstream quarantine show ${e.entry} ${server} --original > entry.json\n` +
          `gqlstream quarantine retry ${e.entry} ${server} --file entry.json`,
      ),
    );
  }

  async function set(refused) {
    if (refused === last) return;
    last = refused;
    try {
      const { entries } = await get("/api/v1/quarantine", { limit: shown });
      el.hidden = entries.length === 0;
      note.hidden = true;
      list.replaceChildren(...entries.map(entry));
    } catch (err) {
      el.hidden = note.hidden = false;
      setText(note, err.message);
      last = -1;
    }
  }
  return { el, set };
}
