// A chart as one SVG that stands alone: title, legend, axes, source and note are in it. The page
// saves it as SVG and PNG, charts to embed are made of it, and so are small multiples.

import { svg } from "./dom.js";
import { bandPath, linear, shareRange, shareTicks, stepPath } from "./scale.js";
import { timeTicks, zone } from "./time.js";

const font = "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
const side = 46, foot = 26, lineHeight = 18;

// colours of a picture, by theme.
export const themes = {
  light: { back: "#ffffff", text: "#1c2430", muted: "#5d6878", line: "#e3e7ec", bad: "#a63448" },
  dark: { back: "#181e26", text: "#e4e9ef", muted: "#95a1b0", line: "#262e39", bad: "#ee8b9b" },
};

const text = (x, y, words, style = {}) => svg("text", {
  x, y, "font-family": font, "font-size": 12, ...style,
}, words);

// frame returns the range of both axes, and where the plot stands.
function frame(o) {
  const all = o.lines.flatMap((l) => l.points);
  const inside = (p) => (o.from === null || p.at >= o.from) && (o.to === null || p.at <= o.to);
  const shown = all.filter(inside);
  const first = Math.min(...all.map((p) => p.at));
  const from = Math.max(o.from ?? first, first); // nothing is drawn where there was nothing
  const to = Math.max(o.to ?? Math.max(...all.map((p) => p.at)), o.to ?? o.until ?? -Infinity);
  const values = o.lines.flatMap((l) => l.points.filter(inside).flatMap((p) =>
    [p.e.prevalence?.[l.k], p.e.low?.[l.k], p.e.high?.[l.k]]));
  const range = o.range ?? shareRange([...values, ...(o.levels ?? []).map((l) => l.value)]);
  return { from: shown.length ? from : to - 1, to: to > from ? to : from + 60, range };
}

// axes draws the grid with its words.
function axes(o, box, x, y) {
  const { colours } = o, out = [];
  for (const share of shareTicks(...box.range, o.compact ? 3 : 6)) {
    const at = y(share);
    out.push(svg("line", { x1: box.left, x2: box.right, y1: at, y2: at, stroke: colours.line }),
      text(box.left - 6, at + 4, `${+(100 * share).toFixed(1)} %`,
        { "text-anchor": "end", fill: colours.muted, "font-size": o.compact ? 10 : 12 }));
  }
  const count = Math.max(2, Math.floor((box.right - box.left) / (o.compact ? 90 : 110)));
  for (const tick of timeTicks(box.from, box.to, count)) {
    const at = x(tick.at);
    if (at > box.right - 14 && !o.compact) continue;
    out.push(text(at, box.bottom + 16, tick.text,
      { "text-anchor": "middle", fill: colours.muted, "font-size": o.compact ? 10 : 12 }));
    if (!o.compact) {
      out.push(svg("line",
        { x1: at, x2: at, y1: box.top, y2: box.bottom, stroke: colours.line }));
    }
  }
  return out;
}

// curves draws intervals first, so that no band covers a line.
function curves(o, box, x, y) {
  const end = x(Math.min(o.until ?? box.to, box.to));
  const inside = (p) => p.at <= box.to;
  const clip = (at) => Math.max(box.left, x(at));
  // The last point before the part that is shown is in force at its beginning.
  const shown = (points) => points.filter((p, i) =>
    inside(p) && (p.at >= box.from || (points[i + 1]?.at ?? Infinity) > box.from));
  const bands = o.lines.map((l) => svg("path", { fill: l.stroke, "fill-opacity": 0.16,
    d: bandPath(shown(l.points).map((p) =>
      [clip(p.at), y(p.e.low?.[l.k]), y(p.e.high?.[l.k])]), end) }));
  const lines = o.lines.flatMap((l) => [
    l.plain && svg("path", { fill: "none", stroke: l.stroke, "stroke-width": 1.25,
      "stroke-dasharray": "3 4",
      d: stepPath(shown(l.plain).map((p) => [clip(p.at), y(p.e.prevalence?.[l.k])]), end) }),
    l.revised && svg("path", { fill: "none", stroke: l.stroke, "stroke-width": 1.5,
      "stroke-dasharray": "7 3",
      d: stepPath(shown(l.revised).map((p) => [clip(p.at), y(p.e.prevalence?.[l.k])]), end) }),
    svg("path", { fill: "none", stroke: l.stroke, "stroke-width": o.compact ? 1.5 : 2,
      d: stepPath(shown(l.points).map((p) => [clip(p.at), y(p.e.prevalence?.[l.k])]), end) }),
  ]);
  return [...bands, ...lines.filter(Boolean)];
}

// dots draws shares among labels drawn at random, each with its interval.
function dots(o, box, x, y) {
  return (o.dots ?? []).filter((p) => p.at >= box.from && p.at <= box.to).map((p) => svg("g",
    { stroke: p.stroke, fill: o.colours.back, "stroke-width": 1.5 },
    svg("line", { x1: x(p.at), x2: x(p.at), y1: y(p.low), y2: y(p.high) }),
    svg("circle", { cx: x(p.at), cy: y(p.share), r: 4 })));
}

// marks draws lines for versions, notes and alerts, and for the levels that rules watch.
function marks(o, box, x, y) {
  const out = [], taken = [];
  for (const m of o.marks ?? []) {
    if (m.at < box.from || m.at > box.to) continue;
    const at = x(m.at), fill = m.kind === "alert" ? o.colours.bad : o.colours.muted;
    out.push(svg("line", { x1: at, x2: at, y1: box.top, y2: box.bottom, stroke: fill,
      "stroke-dasharray": { alert: "", note: "1 2", ended: "4 3" }[m.kind] ?? "2 3" }));
    const width = 6.2 * m.text.length + 8;
    if (o.compact || !m.text || taken.some((t) => Math.abs(t - at) < width)) continue;
    taken.push(at);
    const right = at + width > box.right;
    out.push(text(at + (right ? -4 : 4), box.top + 11, m.text,
      { fill, "font-size": 11, "text-anchor": right ? "end" : "start" }));
  }
  for (const level of o.compact ? [] : o.levels ?? []) {
    const at = y(level.value);
    out.push(svg("line", { x1: box.left, x2: box.right, y1: at, y2: at,
      stroke: o.colours.bad, "stroke-dasharray": "6 4" }),
    text(box.right - 4, at - 4, level.text,
      { fill: o.colours.bad, "font-size": 11, "text-anchor": "end" }));
  }
  return out;
}

// heading draws the title, a description, and a row for each line.
function heading(o) {
  const out = [];
  let y = 4; // the first line stands at 24
  for (const line of wrap(o.title, o.width, 8.8)) {
    y += 20;
    out.push(text(12, y, line, { "font-size": 16, "font-weight": 600, fill: o.colours.text }));
  }
  for (const line of wrap(o.subtitle ?? "", o.width, 6.2)) {
    y += lineHeight;
    out.push(text(12, y, line, { fill: o.colours.muted }));
  }
  for (const l of o.lines) {
    y += lineHeight;
    out.push(svg("rect", { x: 12, y: y - 9, width: 10, height: 10, rx: 2, fill: l.stroke }),
      text(28, y, `${l.label}  ${l.value ?? ""}`, { fill: o.colours.text }));
  }
  return { nodes: out, height: y + 12 };
}

// legendWords explain lines, bands and marks.
export function legendWords(o) {
  const plain = o.lines.some((l) => l.plain), revised = o.lines.some((l) => l.revised);
  return [`Line: estimate, in force until the next. Band: ${o.confidence ?? 90} % interval.`,
    plain && "Dotted: plain count of the predictions.",
    revised && "Dashed: revised by later knowledge of the classifier.",
    o.dots?.length > 0 && "Circle: labels of members drawn at random.",
    o.levels?.length > 0 && "Red dashes: level of an alert rule.",
    `Times: ${zone()}.`].filter(Boolean).join(" ");
}

// picture returns the SVG of a chart. Options: lines [{label, value, stroke, points, k, plain,
// revised}], from, to, until (the newest value is in force up to there), title, subtitle, source,
// note, confidence, marks, levels, dots, colours, width, height, compact, range.
export function picture(options) {
  const o = { from: null, to: null, width: 860, height: 480, colours: themes.light, ...options };
  const head = o.compact ? { nodes: [], height: 6 } : heading(o);
  const below = o.compact ? [] : [...wrap(legendWords(o), o.width),
    ...wrap([o.note, o.source && `Source: ${o.source}`].filter(Boolean).join(" · "), o.width)];
  const range = frame(o);
  const box = { ...range, left: o.compact ? 38 : side + 8, right: o.width - 14,
    top: head.height, bottom: o.height - foot - below.length * 16 - (below.length ? 4 : 0) };
  const x = linear(box.from, box.to, box.left, box.right);
  const y = linear(...box.range, box.bottom, box.top);
  const words = below.map((line, i) =>
    text(12, box.bottom + foot + 14 + 16 * i, line, { fill: o.colours.muted, "font-size": 11 }));
  return svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${o.width} ${o.height}`,
    width: o.width, height: o.height, role: "img", "aria-label": o.label ?? o.title },
  svg("rect", { width: o.width, height: o.height, fill: o.colours.back }), head.nodes,
  axes(o, box, x, y), curves(o, box, x, y), marks(o, box, x, y), dots(o, box, x, y), words);
}

// wrap breaks words into lines that fit the width, for letters of a mean width.
function wrap(words, width, letter = 5.6) {
  const most = Math.floor((width - 24) / letter), lines = [];
  for (const word of words.split(" ").filter(Boolean)) {
    const last = lines.length - 1;
    if (last >= 0 && lines[last].length + word.length < most) lines[last] += ` ${word}`;
    else lines.push(word);
  }
  return lines;
}

// svgBlob is a picture as a file.
export const svgBlob = (node) =>
  new Blob([new XMLSerializer().serializeToString(node)], { type: "image/svg+xml" });

// pngBlob draws a picture at twice its size, so that it is sharp on paper.
export async function pngBlob(node) {
  const url = URL.createObjectURL(svgBlob(node));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * node.getAttribute("width");
    canvas.height = 2 * node.getAttribute("height");
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done) => canvas.toBlob(done, "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}
