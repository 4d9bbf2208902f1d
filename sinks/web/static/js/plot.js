// The chart of a community: lines with their intervals, of several classes or of
// several communities and methods; what is marked in it; and its picture.

import { h, css, setText } from "./dom.js";
import { chart, faded, timeAxis, wholeSteps } from "./chart.js";
import { table, alone, nearest, switches } from "./series.js";
import { compact, count, interval, none, percent, time } from "./format.js";

const headHeight = 22; // of a line of words above a picture

// plot returns a chart; set({lines, timed, from, to, marked}) draws. A line is {label,
// value, stroke, points, k, plain}: points are its estimates, plain those of the plain
// count. The first line's points are the ones that can be picked.
export function plot({ label, quiet, overlays, onZoom, onPick }) {
  const state = { lines: [], timed: true, from: null, to: null };
  let hovered = false;
  const hover = h("p", { class: "hover", "aria-hidden": "true" });
  const drawn = chart(options, { height: 340, onHover: showHover, onPick: pick, onZoom, label });

  const at = (p) => (state.timed ? p.at : p.position);
  const ends = () => {
    const all = state.lines.flatMap((l) => l.points.map(at));
    return [state.from ?? Math.min(...all), state.to ?? Math.max(...all)];
  };
  const span = () => { const [from, to] = ends(); return to - from; };

  function options() {
    const series = [{}], bands = [];
    for (const line of state.lines) {
      bands.push({ series: [series.length + 1, series.length], fill: faded(line.stroke, state.lines.length > 3 ? 0.1 : 0.16) });
      series.push({ stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } },
        { stroke: line.stroke, width: 2, points: { show: false } });
      if (line.plain) series.push({ stroke: line.stroke, width: 1.25, dash: [3, 4], points: { show: false } });
    }
    return {
      series,
      bands,
      scales: { x: { time: false, range: xRange }, y: { range: (u, low, high) => yRange(low, high) } },
      axes: [state.timed ? timeAxis() : { space: 84, size: 26, incrs: wholeSteps, values: (u, list) => list.map((x) => compact(x)) },
        { size: 52, values: (u, list) => list.map((x) => `${+(100 * x).toFixed(1)} %`) }],
      hooks: { draw: [drawAlone, drawSwitches, ...overlays.map((draw) => (u) => draw(u, state.timed))] },
    };
  }

  // xRange gives a single point some room.
  function xRange(u, low, high) {
    if (low === null || high === null) return [0, 1];
    const [first, last] = ends(); // of one point the chart itself makes a range of years
    if (first === last) return [first - 30, last + 30];
    return state.timed ? [state.from ?? low, state.to ?? high] : [low, high];
  }

  function yRange(low, high) {
    if (low === null || high === null) return [0, 1];
    const pad = Math.max(0.01, 0.08 * (high - low));
    return [Math.max(0, low - pad), Math.min(1, high + pad)];
  }

  // drawAlone draws points that no line leads to, with their intervals.
  function drawAlone(u) {
    const ratio = devicePixelRatio, { ctx } = u, width = span();
    ctx.save();
    ctx.setLineDash([]); // the line drawn last may be dotted
    ctx.lineWidth = 1.5 * ratio;
    for (const line of state.lines) {
      ctx.strokeStyle = ctx.fillStyle = line.stroke;
      for (const p of alone(line.points, state.timed, width, quiet)) {
        const share = p.e.prevalence?.[line.k], low = p.e.low?.[line.k], high = p.e.high?.[line.k];
        if (!Number.isFinite(share) || at(p) < u.scales.x.min || at(p) > u.scales.x.max) continue;
        const x = u.valToPos(at(p), "x", true), y = (v) => u.valToPos(v, "y", true);
        if (Number.isFinite(low) && Number.isFinite(high)) {
          ctx.beginPath();
          for (const end of [low, high]) { ctx.moveTo(x - 5 * ratio, y(end)); ctx.lineTo(x + 5 * ratio, y(end)); }
          ctx.moveTo(x, y(low));
          ctx.lineTo(x, y(high));
          ctx.stroke();
        }
        ctx.beginPath();
        ctx.arc(x, y(share), 3.5 * ratio, 0, 2 * Math.PI);
        ctx.fill();
      }
    }
    ctx.restore();
  }

  // drawSwitches marks where the model version of the first line changed.
  function drawSwitches(u) {
    const ratio = devicePixelRatio, { ctx } = u;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = css("--muted");
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.lineWidth = ratio;
    for (const p of switches(state.lines[0]?.points || [])) {
      if (at(p) < u.scales.x.min || at(p) > u.scales.x.max) continue;
      const x = Math.round(u.valToPos(at(p), "x", true)) + 0.5;
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, u.bbox.top);
      ctx.lineTo(x, u.bbox.top + u.bbox.height);
      ctx.stroke();
      const text = `model ${p.e.model_version || none}`.slice(0, 24);
      const right = x + ctx.measureText(text).width + 8 * ratio > u.bbox.left + u.bbox.width;
      ctx.textAlign = right ? "right" : "left";
      ctx.fillText(text, x + (right ? -4 : 4) * ratio, u.bbox.top + 11 * ratio);
    }
    ctx.restore();
  }

  function set(next) {
    Object.assign(state, next);
    const width = span(), tables = [];
    for (const { points, k, plain } of state.lines) {
      tables.push(table(points, state.timed, width, quiet, ["low", "high", "prevalence"].map((field) => (e) => e[field]?.[k])));
      if (plain) tables.push(table(plain, state.timed, width, quiet, [(e) => e.prevalence?.[k]]));
    }
    const data = tables.length ? window.uPlot.join(tables) : [[]];
    drawn.set(data, JSON.stringify([state.timed, state.lines.map((l) => [l.label, l.stroke, Boolean(l.plain)])]));
    if (!hovered) showHover(null);
  }

  function showHover(x) {
    hovered = x !== null;
    const known = state.lines.filter((l) => l.points.length);
    if (known.length && known.every((l) => l.points.length === 1)) x = at(known[0].points[0]);
    if (x === null || !known.length) {
      setText(hover, state.lines.some((l) => l.plain) ? "Line: estimate. Band: interval. Dotted: plain count of the predictions." : "Line: estimate. Band: interval.");
      return;
    }
    const parts = known.map((l) => {
      const { e } = l.points[nearest(l.points, state.timed, x)];
      return `${l.label} ${percent(e.prevalence?.[l.k])} (${interval(e.low?.[l.k], e.high?.[l.k])})`;
    });
    const p = known[0].points[nearest(known[0].points, state.timed, x)];
    const over = p.period ? ` (mean of ${count(p.e.count)} in the ${p.e.resolution})` : "";
    setText(hover, `${Number.isFinite(p.at) ? time(p.e.time) + over : `position ${count(p.position)}`}  ·  ${parts.join("  ·  ")}`);
  }

  function pick(x) {
    const list = state.lines[0]?.points || [];
    if (list.length) onPick(list[nearest(list, state.timed, x)].position);
  }

  // picture returns the chart with words above it, as a PNG.
  function picture(title) {
    const chart = drawn.canvas(), ratio = devicePixelRatio;
    const canvas = h("canvas", { width: chart.width, height: chart.height + (state.lines.length + 1) * headHeight * ratio + 8 * ratio });
    const ctx = canvas.getContext("2d");
    ctx.fillStyle = css("--card");
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.textBaseline = "middle";
    const row = (i) => (i + 0.7) * headHeight * ratio;
    ctx.font = `600 ${14 * ratio}px system-ui, sans-serif`;
    ctx.fillStyle = css("--text");
    ctx.fillText(title, 12 * ratio, row(0), canvas.width - 24 * ratio);
    ctx.font = `${12 * ratio}px system-ui, sans-serif`;
    state.lines.forEach((line, i) => {
      ctx.fillStyle = line.stroke;
      ctx.fillRect(12 * ratio, row(i + 1) - 5 * ratio, 10 * ratio, 10 * ratio);
      ctx.fillStyle = css("--text");
      ctx.fillText(`${line.label} ${line.value}`, 28 * ratio, row(i + 1), canvas.width - 40 * ratio);
    });
    ctx.drawImage(chart, 0, canvas.height - chart.height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  return { el: drawn.el, hover, set, picture, redraw: drawn.redraw, rebuild: drawn.rebuild, destroy: drawn.destroy };
}
