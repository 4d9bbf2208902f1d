// Small multiples: the charts of all communities on one page, on one scale, so that eyes compare
// them. Charts are read when they come into sight.

import { get } from "./api.js";
import { h, css, setText } from "./dom.js";
import { community, iso, replace, whole } from "./address.js";
import { count, interval, named, percent } from "./format.js";
import { chips } from "./flags.js";
import { colourValue, distinct } from "./palette.js";
import { picture } from "./picture.js";
import { movement } from "./row.js";
import { Series } from "./series.js";

const most = 500; // communities on the page
const points = 160;
const refreshEvery = 15000;
const ranges = [["24 h", 86400], ["7 d", 604800], ["30 d", 2592000], ["All", 0]];
const orders = [["name", "Name"], ["movement", "Movement"], ["share", "Share"],
  ["members", "Members"]];
const scales = [["own", "Each its own"], ["one", "One scale"]];

const colours = () => ({ back: css("--card"), text: css("--text"), muted: css("--muted"),
  line: css("--line"), bad: css("--bad") });

// Card is the chart of one community.
class Card {
  constructor(page, row) {
    Object.assign(this, { page, row, series: null });
    this.share = h("b");
    this.bounds = h("span", { class: "quiet" });
    this.moved = h("span", { class: "quiet" });
    this.flags = h("span", { class: "chips" });
    this.chart = h("div", { class: "small-chart", "aria-busy": "true" });
    this.link = h("a", { class: "name-link", title: row.name }, named(row.name));
    this.el = h("article", { class: "card small" }, h("h2", {}, this.link),
      h("p", {}, this.share, " ", this.bounds, " ", this.moved), this.chart, this.flags);
    this.update(row);
  }

  update(row) {
    this.row = row;
    const { k, range } = this.page.state, e = row.estimate, moved = movement(row);
    this.link.href = community(row.name, { class: k || "", range: range || "" });
    setText(this.share, e.suppressed ? "not published" : percent(e.prevalence?.[k]));
    const bounds = interval(e.low?.[k], e.high?.[k]);
    setText(this.bounds, bounds && `(${bounds})`);
    setText(this.moved, moved.text && `${moved.text} in a day`);
    this.moved.title = moved.title;
    this.flags.replaceChildren(...chips(e.flags, this.page.info, 2));
  }

  async read() {
    const { range } = this.page.state, end = Date.parse(this.row.estimate.time) / 1000;
    const from = range && Number.isFinite(end) ? iso(end - range) : "";
    try {
      const path = `/api/v1/communities/${encodeURIComponent(this.row.name)}/history`;
      this.series = Series.of(await get(path, { points, from }));
      this.draw();
    } catch (err) {
      this.chart.replaceChildren(h("p", { class: "quiet" }, err.message));
    }
    this.chart.setAttribute("aria-busy", "false");
  }

  draw() {
    const { state, info, until } = this.page, list = this.series?.points ?? [];
    const known = list.some((p) => p.e.prevalence?.length);
    if (!known || !this.series.timed) {
      this.chart.replaceChildren(h("p", { class: "quiet" }, "Nothing to draw yet"));
      return;
    }
    const stroke = colourValue(distinct(info.slots, [state.k]).get(state.k));
    const end = until ?? this.series.last.at;
    this.chart.replaceChildren(
      picture({
        lines: [{ label: info.labels[state.k], points: list, k: state.k, stroke }],
        compact: true,
        from: state.range ? Math.max(end - state.range, list[0].at) : null,
        until: end,
        width: 320,
        height: 130,
        colours: colours(),
        range: state.scale === "one" ? [0, 1] : undefined,
        title: named(this.row.name),
        label: `${named(this.row.name)}, ${info.labels[state.k]} over time`,
      }),
    );
  }
}

class Charts {
  constructor(info, { query }) {
    const one = (name, list) =>
      list.some(([v]) => v === query.get(name)) ? query.get(name) : list[0][0];
    this.info = info;
    this.state = {
      k: whole(query, "class", info.classes.length) ?? (info.classes.length === 2 ? 1 : 0),
      range: whole(query, "range") ?? 0, sort: one("sort", orders), scale: one("scale", scales),
    };
    this.cards = new Map();
    this.seen = new IntersectionObserver((list) => list.forEach((x) => {
      if (x.isIntersecting) this.show(x.target.card);
    }), { rootMargin: "200px" });
    this.build();
  }

  build() {
    const { info, state } = this;
    const select = (label, field, list, read = (x) => x) => {
      const el = h("select", { "aria-label": label, onchange: () => {
        state[field] = read(el.value);
        replace("/charts", { class: state.k, range: state.range, sort: state.sort,
          scale: state.scale });
        this.load(true);
      } }, list.map(([value, text]) =>
        h("option", { value, selected: String(value) === String(state[field]) }, text)));
      return h("label", { class: "pick" }, h("span", {}, label), el);
    };
    this.summary = h("span", { class: "summary", role: "status" });
    this.grid = h("div", { class: "grid" });
    this.note = h("p", { class: "note" }, "Loading the charts …");
    this.el = h(
      "section",
      { class: "charts-page" },
      h(
        "div",
        { class: "bar-tools" },
        h("h1", {}, "Charts"),
        this.summary,
        h(
          "div",
          { class: "tools" },
          select(
            "Class",
            "k",
            info.labels.map((name, i) => [i, name]),
            Number,
          ),
          select(
            "Time",
            "range",
            ranges.map(([text, v]) => [v, text]),
            Number,
          ),
          select("Order", "sort", orders),
          select("Scale", "scale", scales),
        ),
      ),
      this.note,
      this.grid,
    );
  }

  // load reads the list of communities. If anew is set, it also reads every visible chart again.
  async load(anew) {
    clearTimeout(this.timer);
    const { k, sort } = this.state;
    const asked = { class: k, sort, order: sort === "name" ? "" : "desc", limit: most };
    try {
      const list = await get("/api/v1/communities", asked);
      if (this.gone) return;
      setText(this.summary, list.matched > most ? `${most} of ${count(list.matched)}`
        : count(list.matched));
      this.note.hidden = list.matched > 0;
      setText(this.note, "No community yet.");
      this.place(list.communities, anew);
    } catch (err) {
      this.note.hidden = false;
      setText(this.note, `No answer from the server: ${err.message}`);
    }
    this.timer = setTimeout(() => this.load(false), refreshEvery);
  }

  // place puts the cards into the order of the list.
  place(rows, anew) {
    const names = new Set(rows.map((row) => row.name));
    for (const [name, card] of this.cards) {
      if (names.has(name)) continue;
      card.el.remove();
      this.cards.delete(name);
    }
    rows.forEach((row, i) => {
      let card = this.cards.get(row.name);
      if (!card) {
        card = new Card(this, row);
        card.el.card = card;
        this.cards.set(row.name, card);
      }
      const fresh = card.row.estimate.position !== row.estimate.position;
      card.update(row);
      if (this.grid.children[i] !== card.el) this.grid.insertBefore(card.el, this.grid.children[i]);
      if (anew || fresh) card.stale = true;
      this.seen.unobserve(card.el); // observing again tells whether it is in sight
      this.seen.observe(card.el);
    });
  }

  show(card) {
    if (card.series && !card.stale) return;
    card.stale = false;
    card.read();
  }

  stop() {
    this.gone = true;
    clearTimeout(this.timer);
    this.seen.disconnect();
  }
}

export function charts(info, at) {
  const page = new Charts(info, at);
  return {
    el: page.el,
    title: "Charts",
    names: [],
    mounted() { page.load(true); },
    refresh() { page.load(false); },
    status(status) {
      const until = Date.parse(status.log_time ?? "") / 1000;
      page.until = Number.isFinite(until) ? until : undefined;
    },
    theme() { for (const card of page.cards.values()) if (card.series) card.draw(); },
    unmount() { page.stop(); },
  };
}
