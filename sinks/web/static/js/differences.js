// The difference between a community and others, or itself at an earlier time. The server gives
// the error of the difference; errors that both have in common cancel.

import { get } from "./api.js";
import { h } from "./dom.js";
import { named, points } from "./format.js";
import { moment } from "./time.js";
import { iso } from "./address.js";

const askEvery = 2000;

// differences returns a list; set asks again after a change, but not more often than askEvery.
export function differences(name) {
  const el = h("ul", { class: "gaps", "aria-label": "Differences", hidden: true });
  let asked = "", timer = 0, stopped = false;

  // line says "Lyon less Paris: +3.1 points, 90 % from +1.0 to +5.2".
  function line(text, e, k) {
    return h(
      "li",
      {},
      `${text}: `,
      h("b", {}, `${points(e.prevalence[k])} points`),
      ` (${Math.round(100 * (e.confidence || 0.9))} %: ` +
        `${points(e.low[k])} to ${points(e.high[k])})`,
    );
  }

  async function show(method, others, from, to, k) {
    const wanted = others.map((other) => [
      `${named(name)} less ${named(other)}`,
      { other, method },
    ]);
    if (from !== null) {
      const until = to === null ? {} : { until: iso(to) };
      const span = to === null ? `since ${moment(iso(from))}`
        : `from ${moment(iso(from))} to ${moment(iso(to))}`;
      wanted.push([
        `Published share of ${named(name)} ${span}`,
        { at: iso(from), ...until, method },
      ]);
    }
    const lines = await Promise.all(wanted.map(async ([text, query]) => {
      try {
        return line(
          text,
          (await get(`/api/v1/communities/${encodeURIComponent(name)}/difference`, query)).estimate,
          k,
        );
      } catch (err) {
        return h("li", { class: "quiet" }, `${text}: ${err.message}`);
      }
    }));
    if (stopped) return;
    el.replaceChildren(...lines);
    el.hidden = lines.length === 0;
  }

  // set gets the other communities by the same method, the beginning and the end of the chart where
  // the user chose them, the class, and a position that moves with the records.
  function set(method, others, [from, to], k, position) {
    const wanted = JSON.stringify([method, others, from, to, k, position]);
    if (wanted === asked || timer) return;
    asked = wanted;
    timer = setTimeout(() => { timer = 0; }, askEvery);
    show(method, others, from, to, k);
  }
  return { el, set, stop() { stopped = true; clearTimeout(timer); } };
}
