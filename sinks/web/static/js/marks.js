// Small drawings: stacked bars, intervals, trends, flags.

import { h, svg, setAttr } from "./dom.js";
import { colour, folded } from "./palette.js";
import { percent } from "./format.js";

// bar returns an element that shows shares as one stacked bar, and its update. Each part
// is as wide as its share; small classes are one part at the end.
export function bar(info) {
  const parts = info.classes.map((_, k) =>
    h("i", { class: colour(info.slots[k]), "data-class": k }),
  );
  const other = h("i", { class: "kother", "data-class": "other" });
  const el = h("div", { class: "bar", role: "img" }, parts, other);
  return {
    el,
    set(shares) {
      let rest = 0;
      parts.forEach((part, k) => {
        const share = shares?.[k] ?? 0, small = folded(info.slots, share, k);
        if (small) rest += share;
        part.style.width = `${small ? 0 : 100 * share}%`;
      });
      other.style.width = `${100 * rest}%`;
      const largest = (shares || []).map((x, k) => [x, k]).sort((a, b) => b[0] - a[0]).slice(0, 4);
      setAttr(
        el,
        "aria-label",
        largest.map(([x, k]) => `${info.labels[k]} ${percent(x)}`).join(", ") || "not published",
      );
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
    set(share, low, high, slot) {
      const known = Number.isFinite(share);
      el.style.visibility = known ? "visible" : "hidden";
      if (!known) return;
      setAttr(el, "class", `whisker ${colour(slot)}`);
      setAttr(point, "cx", x(share).toFixed(1));
      const bounds = Number.isFinite(low) && Number.isFinite(high);
      setAttr(range, "x", x(bounds ? low : share).toFixed(1));
      setAttr(
        range,
        "width",
        Math.max(0, x(bounds ? high : share) - x(bounds ? low : share)).toFixed(1),
      );
    },
  };
}

// reach is how far the shares of a trend go, and the least that a trend is drawn over:
// four points, so that noise does not look like news.
export const reach = (values) =>
  Math.max(0.04, values?.length ? Math.max(...values) - Math.min(...values) : 0);

// trend is a line over the last shares. Lines that are seen together have one span, or
// four points would look like forty.
export function trend() {
  const line = svg("polyline", { fill: "none" });
  const dot = svg("circle", { r: 2.2 });
  const el = svg("svg", { class: "trend", viewBox: "0 0 96 24", "aria-hidden": "true" }, line, dot);
  return {
    el,
    set(values, slot, span) {
      el.style.visibility = values && values.length > 1 ? "visible" : "hidden";
      if (!values || values.length < 2) return;
      setAttr(el, "class", `trend ${colour(slot)}`);
      const middle = (Math.min(...values) + Math.max(...values)) / 2;
      const at = values.map((v, i) => [
        3 + (89 * i) / (values.length - 1),
        12 - (18 * (v - middle)) / span,
      ]);
      setAttr(line, "points", at.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "));
      const [x, y] = at[at.length - 1];
      setAttr(dot, "cx", x.toFixed(1));
      setAttr(dot, "cy", y.toFixed(1));
    },
  };
}

// legend names the colours of the classes.
export function legend(info) {
  const own = info.labels.map((name, k) => [name, k]).filter(([, k]) => info.slots[k] >= 0);
  const fold =
    info.labels.length > own.length
      ? `other: ${info.labels.length - own.length} smaller classes`
      : folded(info.slots, 0, 0) && "other: below 1 %";
  return h("ul", { class: "legend", "aria-label": "Classes" },
    own.map(([name, k]) => h("li", {}, h("i", { class: colour(info.slots[k]) }), name)),
    fold && h("li", {}, h("i", { class: "kother" }), fold));
}
