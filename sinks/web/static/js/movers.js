// The communities that moved most in a day, as far as news moved them beyond its error. The first
// estimates of a log, which swing because there are hardly any labels, have large errors.

import { get } from "./api.js";
import { h, setText } from "./dom.js";
import { community } from "./address.js";
import { named } from "./format.js";
import { movement } from "./row.js";

const shown = 5;
const sharesLeast = 0.005; // a share that moved by less is no news
const errorsLeast = 2;

// isNews reports whether a row moved visibly, and by more than twice its error.
function isNews(row) {
  const moved = Math.abs(row.moved ?? 0);
  return moved >= sharesLeast && row.moved_se > 0 && moved >= errorsLeast * row.moved_se;
}

// movers returns a line; draw reads it again for a class and a method, and update takes newer
// figures from rows of the list, so that both say the same.
export function movers(info) {
  const el = h("p", { class: "movers", hidden: true });
  const figures = new Map(); // by community
  async function draw(k, method) {
    let list = [];
    try {
      const asked = { sort: "movement", order: "desc", class: k, method, limit: shown };
      list = (await get("/api/v1/communities", asked)).communities.filter(isNews);
    } catch { /* the list says it */ }
    el.hidden = list.length === 0;
    figures.clear();
    el.replaceChildren(h("span", {}, `${info.labels[k]} moved most in a day:`),
      ...list.map((row) => {
        const words = movement(row);
        const to = community(row.name, { class: k || "", method, from: row.since });
        const figure = h("b", {}, words.text);
        figures.set(row.name, figure);
        return h("a", { href: to, title: words.title }, named(row.name), figure);
      }));
  }
  function update(rows) {
    for (const row of rows) {
      const figure = figures.get(row.name);
      if (figure) setText(figure, movement(row).text);
    }
  }
  return { el, draw, update };
}
