// A table of figures whose cells change in place.

import { h, setText } from "./dom.js";

// grid returns a table and a text for an empty one; set gets the cells of each row. A cell is a
// text or, for a bar, {share}; a share of null hides the bar.
export function grid(heads, empty, attrs = {}) {
  const body = h("tbody"), note = h("p", { class: "quiet" }, empty);
  const titles = h("tr", {}, heads.map((t) => h("th", { scope: "col" }, t)));
  const table = h("table", attrs, h("thead", {}, titles), body);

  const cell = (i) => (i === 0
    ? h("th", { scope: "row" })
    : h("td", { "data-head": heads[i] || undefined }));

  function fill(node, value) {
    if (typeof value !== "object") {
      setText(node, value);
      return;
    }
    if (!node.firstChild) node.append(h("div", { class: "gauge" }, h("i")));
    node.firstChild.hidden = value.share === null;
    node.firstChild.firstChild.style.width = `${Math.min(100, 100 * value.share)}%`;
  }

  function set(rows) {
    note.hidden = rows.length > 0;
    table.hidden = rows.length === 0;
    while (body.children.length > rows.length) body.lastChild.remove();
    rows.forEach((cells, r) => {
      if (!body.children[r]) body.append(h("tr", {}, cells.map((_, i) => cell(i))));
      cells.forEach((value, i) => fill(body.children[r].children[i], value));
    });
  }
  return { parts: [table, note], set };
}
