// Events per second and lag of the pipeline since the page was opened, and their charts.

import { h, css } from "./dom.js";
import { colour, colourValue } from "./palette.js";
import { tick } from "./format.js";
import { chart, faded, timeAxis, wholeSteps } from "./chart.js";

const usual = ["edge", "label", "prediction", "member", "vertex", "control", "post"];

// kinds lists kinds of events: the usual ones in their order, and others after them.
export const kinds = (names) => [...usual, ...names.filter((name) => !usual.includes(name)).sort()];

const samplesMax = 300;

// past holds the data of the charts. A kind that a status lacks is zero.
const past = { time: [], lag: [], rates: {} };

// Events of each kind a second, between two statuses some seconds apart, and the later status.
const ratesEvery = 2;
let latest = {}, counted = null;

// rates returns the events of each kind a second.
export const rates = () => latest;

// remember adds a status to the charts.
export function remember(s) {
  if (!s.pushed) return;
  const at = Date.parse(s.pushed) / 1000;
  if (counted && at - counted.at < ratesEvery) return;
  latest = {};
  for (const [name, all] of Object.entries(s.events)) {
    const more = all - (counted?.events[name] ?? 0);
    if (counted && more >= 0) latest[name] = more / (at - counted.at); // or counting has restarted
  }
  counted = { at, events: s.events };
  if (Object.keys(latest).length === 0) return;
  past.time.push(at);
  past.lag.push(s.lag);
  for (const name of Object.keys(latest))
    past.rates[name] ??= new Array(past.time.length - 1).fill(0);
  for (const [name, list] of Object.entries(past.rates)) list.push(latest[name] ?? 0);
  if (past.time.length > samplesMax)
    for (const list of [past.time, past.lag, ...Object.values(past.rates)]) list.shift();
}

const scales = {
  x: { time: false },
  y: { range: (u, low, high) => [0, high > 0 ? high * 1.1 : 1] },
};
const line = (stroke, more) => ({ stroke, width: 1.75, points: { show: false }, ...more });
const numbers = { size: 52, values: (u, at) => at.map(tick) };
const shownKinds = () => kinds(Object.keys(past.rates))
  .map((name, i) => [name, i]).filter(([name]) => past.rates[name]);

const eventOptions = () => ({
  series: [{}, ...shownKinds().map(([, i]) => line(colourValue(i)))],
  scales,
  axes: [timeAxis(), numbers],
});
const lagOptions = () => ({
  series: [{}, line(css("--k0"), { fill: faded(css("--k0"), 0.12) })],
  scales,
  axes: [timeAxis(), { ...numbers, incrs: wholeSteps }],
});

// rateCharts returns both charts, with a legend of the kinds.
export function rateCharts() {
  const legend = h("ul", { class: "legend" });
  const events = chart(eventOptions, {
    height: 220,
    label: "Events per second by kind since this page was opened, at most ten minutes",
  });
  const lag = chart(lagOptions, { height: 160, label: "Lag in messages over the same time" });

  function draw() {
    if (past.time.length < 2) return;
    const list = shownKinds();
    events.set(
      [past.time, ...list.map(([name]) => past.rates[name])],
      list.map(([name]) => name).join(),
    );
    lag.set([past.time, past.lag]);
    if (legend.children.length !== list.length)
      legend.replaceChildren(
        ...list.map(([name, i]) => h("li", {}, h("i", { class: colour(i) }), name)),
      );
  }
  return {
    events: [legend, events.el],
    lag: lag.el,
    draw,
    rebuild() { events.rebuild(); lag.rebuild(); },
    destroy() { events.destroy(); lag.destroy(); },
  };
}
