// Small drawings: stacked bars, intervals, trends, flags.

import { h, svg, setAttr, colour } from "./dom.js";
import { flag, percent } from "./format.js";

// bar returns an element that shows shares as one stacked bar, and its update.
export function bar(classes) {
  const parts = classes.map((_, k) => h("i", { class: colour(k) }));
  const el = h("div", { class: "bar", role: "img" }, parts);
  return {
    el,
    set(shares) {
      parts.forEach((part, k) => { part.style.width = `${100 * (shares?.[k] ?? 0)}%`; });
      const largest = (shares || []).map((x, k) => [x, k]).sort((a, b) => b[0] - a[0]).slice(0, 4);
      setAttr(el, "aria-label", largest.map(([x, k]) => `${classes[k]} ${percent(x)}`).join(", ") || "not published");
      setAttr(el, "title", el.getAttribute("aria-label"));
    },
  };
}

// whisker shows a share and its interval on a scale from 0 to 1.
export function whisker() {
  const range = svg("rect", { y: 5, height: 6, rx: 3 });
  const point = svg("circle", { cy: 8, r: 3.5 });
  const el = svg("svg", { class: "whisker", viewBox: "0 0 120 16", "aria-hidden": "true" },
    svg("line", { x1: 4, x2: 116, y1: 8, y2: 8 }), range, point);
  const x = (share) => 4 + 112 * Math.min(1, Math.max(0, share));
  return {
    el,
    set(share, low, high, k) {
      const known = Number.isFinite(share);
      el.style.visibility = known ? "visible" : "hidden";
      if (!known) return;
      setAttr(el, "class", `whisker ${colour(k)}`);
      setAttr(point, "cx", x(share).toFixed(1));
      const bounds = Number.isFinite(low) && Number.isFinite(high);
      setAttr(range, "x", x(bounds ? low : share).toFixed(1));
      setAttr(range, "width", Math.max(0, x(bounds ? high : share) - x(bounds ? low : share)).toFixed(1));
    },
  };
}

// trend is a line over the last shares, on a scale of its own of at least 4 points.
export function trend() {
  const line = svg("polyline", { fill: "none" });
  const dot = svg("circle", { r: 2.2 });
  const el = svg("svg", { class: "trend", viewBox: "0 0 96 24", "aria-hidden": "true" }, line, dot);
  return {
    el,
    set(values, k) {
      el.style.visibility = values && values.length > 1 ? "visible" : "hidden";
      if (!values || values.length < 2) return;
      setAttr(el, "class", `trend ${colour(k)}`);
      const low = Math.min(...values), high = Math.max(...values);
      const span = Math.max(high - low, 0.04), middle = (low + high) / 2;
      const at = values.map((v, i) => [3 + 89 * i / (values.length - 1), 12 - 18 * (v - middle) / span]);
      setAttr(line, "points", at.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "));
      const [x, y] = at[at.length - 1];
      setAttr(dot, "cx", x.toFixed(1));
      setAttr(dot, "cy", y.toFixed(1));
    },
  };
}

// legend names the colours of the classes, up to a limit.
export function legend(classes, most = 12) {
  const shown = classes.slice(0, most);
  return h("ul", { class: "legend", "aria-label": "Classes" },
    shown.map((name, k) => h("li", {}, h("i", { class: colour(k) }), name)),
    classes.length > most && h("li", {}, `and ${classes.length - most} more`));
}

const grave = new Set(["no-members", "no-coverage", "no-labels", "no-label-reachable", "unsupported-class", "shift-disagreement"]);

// chip shows one flag; its title explains it.
export function chip(text, info) {
  const { name, detail } = flag(text, info.labels);
  const doc = info.flags.find((f) => f.name === name);
  const title = `${name}${detail ? ` (${detail})` : ""}${doc ? `: ${doc.meaning}` : ""}`;
  return h("span", { class: grave.has(name) ? "chip grave" : "chip", title }, name);
}
