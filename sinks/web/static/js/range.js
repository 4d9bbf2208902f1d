// The part of time that a chart shows: a while up to now, or from and to.

import { h } from "./dom.js";

const ranges = [
  ["15 min", 900],
  ["1 h", 3600],
  ["6 h", 21600],
  ["24 h", 86400],
  ["30 d", 2592000],
  ["All", 0],
];

const two = (n) => String(n).padStart(2, "0");
const local = (seconds) => { // as an input of the user's time wants it
  if (seconds === null) return "";
  const d = new Date(1000 * seconds);
  const day = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  return `${day}T${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
};

// rangeBox returns buttons and two fields; onChange gets {range, from, to}.
export function rangeBox(onChange) {
  const inputs = ["From", "To"].map((label) =>
    h("input", { type: "datetime-local", step: 1, "aria-label": label, onchange: typed }),
  );
  const fields = h(
    "div",
    { class: "span", hidden: true },
    inputs[0],
    h("span", { "aria-hidden": "true" }, "to"),
    inputs[1],
  );
  const buttons = ranges.map(([label, seconds]) =>
    h(
      "button",
      { type: "button", onclick: () => onChange({ range: seconds, from: null, to: null }) },
      label,
    ),
  );
  const free = h(
    "button",
    {
      type: "button",
      onclick: () => {
        fields.hidden = !fields.hidden;
        draw();
        if (!fields.hidden) inputs[0].focus();
      },
    },
    "From–to",
  );
  const el = h("div", { class: "segments", role: "group", "aria-label": "Range" }, buttons, free);
  let shown = { range: 0, from: null, to: null };

  function typed() {
    const [from, to] = inputs.map((x) => (x.value ? new Date(x.value).getTime() / 1000 : null));
    const wrong = from !== null && to !== null && from >= to;
    inputs[1].setCustomValidity(wrong ? "The end is not after the beginning." : "");
    if (wrong) inputs[1].reportValidity();
    else onChange({ range: 0, from, to });
  }

  function draw() {
    const limited = shown.from !== null || shown.to !== null;
    buttons.forEach((b, i) =>
      b.setAttribute("aria-pressed", String(!limited && ranges[i][1] === shown.range)),
    );
    free.setAttribute("aria-pressed", String(limited));
    free.setAttribute("aria-expanded", String(!fields.hidden));
  }

  function set(next) {
    shown = next;
    if (next.from !== null || next.to !== null) fields.hidden = false;
    [next.from, next.to].forEach((x, i) => {
      if (document.activeElement !== inputs[i]) inputs[i].value = local(x);
    });
    draw();
  }
  return { el, fields, set };
}
