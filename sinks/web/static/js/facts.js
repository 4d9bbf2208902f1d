// A list of figures with their terms.

import { h, setText } from "./dom.js";

// facts returns a list; set gets pairs of a term and a value, and meanings explain terms.
export function facts(meanings = {}) {
  const el = h("dl", { class: "facts" });
  let terms = "";
  function set(pairs) {
    const wanted = pairs.map(([term]) => term).join("\n");
    if (wanted !== terms) {
      el.replaceChildren(...pairs.map(([term]) =>
        h("div", { title: meanings[term] }, h("dt", {}, term), h("dd"))));
      terms = wanted;
    }
    pairs.forEach(([, value], i) => setText(el.children[i].lastChild, value));
  }
  return { el, set };
}
