// The list of communities. The server searches, sorts and pages.

import { apiURL } from "./api.js";
import { h, setText, setAttr, download } from "./dom.js";
import { link as linkTo, replace, whole } from "./address.js";
import { count } from "./format.js";
import { legend } from "./marks.js";
import { Rows } from "./rows.js";
import { movers as moversLine } from "./movers.js";
import { choices } from "./flags.js";
import { emptyWords, noEvents } from "./empty.js";

const moversEvery = 10000;
const clockEvery = 5000;

const columns = [
  { key: "name", label: "Community" },
  { key: "", label: "Prevalence" },
  { key: "share", label: "Share", down: true },
  { key: "width", label: "Interval", down: true },
  { key: "movement", label: "Trend", down: true, title: "Sort by the certainty of a movement" },
  { key: "members", label: "Members", down: true },
  { key: "flags", label: "Flags", down: true },
  { key: "updated", label: "Evidence", down: true, title: "Sort by the time of the last change" },
];

// The user's choices survive a visit to a community; they are in the address.
const kept = { q: "", flag: "", method: "", sort: "name", order: "asc", class: 0, top: 0 };

const chosen = () => ({
  q: kept.q, flag: kept.flag, method: kept.method, sort: kept.sort === "name" ? "" : kept.sort,
  order: kept.order === "asc" ? "" : kept.order, class: kept.class || "",
});

// listAddress leads back to the list as it was left.
export const listAddress = () => linkTo("/", chosen());

// readAddress takes the choices from the address, and the defaults for the rest.
function readAddress(query, info) {
  const before = listAddress(), sort = query.get("sort");
  Object.assign(kept, {
    q: query.get("q") ?? "", flag: query.get("flag") ?? "", method: query.get("method") ?? "",
    sort: columns.some((c) => c.key && c.key === sort) ? sort : "name",
    order: query.get("order") === "desc" ? "desc" : "asc",
    class: whole(query, "class", info.classes.length) ?? 0,
  });
  if (listAddress() !== before) kept.top = 0;
}

class List {
  constructor(info, at) {
    readAddress(at.query, info);
    Object.assign(this, { info, total: 0, estimated: -1, failed: "", methods: [], status: null });
    this.rows = new Rows({
      info, asked: chosen, shown: () => ({ k: kept.class, method: kept.method }),
      onAnswer: (reply) => this.answered(reply), onFailure: (text) => { this.failed = text; },
      onDraw: () => this.drawAround(), onScroll: (top) => { kept.top = top; },
    });
    this.movers = moversLine(info);
    this.build();
    this.slash = (event) => this.seek(event);
    document.addEventListener("keydown", this.slash);
    this.timers = [setInterval(() => this.rows.draw(true), clockEvery),
      setInterval(() => this.drawMovers(), moversEvery)];
  }

  build() {
    const { info } = this;
    this.buildTools();
    this.hint = h("div", { class: "hint", hidden: true });
    this.summary = h("span", { class: "summary", role: "status" });
    this.head = h("div", { class: "row head", role: "row" });
    this.empty = h("div", { class: "note", hidden: true });
    this.table = h("div", { class: "table", role: "table", "aria-label": "Communities" },
      h("div", { role: "rowgroup" }, this.head), this.rows.viewport);
    const pick = (name, select) => h("label", { class: "pick" }, h("span", {}, name), select);
    this.methodPick = pick("Method", this.method);
    this.methodPick.hidden = true;
    this.el = h("section", { class: "communities" },
      h("div", { class: "bar-tools" }, h("h1", {}, "Communities"), this.summary,
        h("div", { class: "tools" }, this.search, pick("Flag", this.flag), this.methodPick,
          pick("Class", this.choice), this.save)),
      this.hint, this.movers.el, legend(info), this.table, this.empty);
  }

  buildTools() {
    const { info } = this;
    const option =
      (now) =>
      ([value, text]) =>
        h("option", { value, selected: value === now }, text);
    this.search = h("input", {
      type: "search", placeholder: "Search communities", "aria-label": "Search communities",
      value: kept.q, maxlength: 100, spellcheck: "false", autocomplete: "off",
      oninput: () => this.typed(),
      onkeydown: (event) => {
        if (event.key !== "ArrowDown" || !this.rows.matched) return;
        event.preventDefault();
        this.rows.move(0);
      },
    });
    this.choice = h("select", { "aria-label": "Class shown", onchange: () => {
      kept.class = Number(this.choice.value);
      this.restart();
    } }, info.labels.map((name, k) => [k, name]).map(option(kept.class)));
    this.flag = h("select", { "aria-label": "Flag", onchange: () => {
      kept.flag = this.flag.value;
      this.restart();
    } }, choices(info).map(option(kept.flag)));
    this.method = h("select", { "aria-label": "Method", onchange: () => {
      kept.method = this.method.value;
      this.restart();
    } });
    this.save = h("button", { type: "button", class: "plain", onclick: () => this.saveRows(),
      title: "Save the communities of this list as CSV" }, "CSV");
  }

  typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => { kept.q = this.search.value.trim(); this.restart(); }, 150);
  }

  // seek goes to the search at the key "/".
  seek(event) {
    const busy = /^(INPUT|SELECT)$/.test(document.activeElement?.tagName);
    if (event.key !== "/" || event.ctrlKey || event.metaKey || busy) return;
    event.preventDefault();
    this.search.focus();
  }

  drawHead() {
    this.head.replaceChildren(...columns.map((c) => {
      const sorted = Boolean(c.key) && kept.sort === c.key;
      const order = sorted ? (kept.order === "asc" ? "ascending" : "descending") : "none";
      const label = c.label === "Share" ? this.info.labels[kept.class] : c.label;
      const arrow = sorted ? (kept.order === "asc" ? "↑" : "↓") : "";
      return h("div", { role: "columnheader", class: `c-${c.label.toLowerCase()}`,
        "aria-sort": c.key ? order : undefined },
      c.key ? h("button", { type: "button", title: c.title ?? `Sort by ${label}`,
        onclick: () => this.sortBy(c) }, h("span", {}, label),
      h("span", { class: "arrow", "aria-hidden": "true" }, arrow)) : label);
    }));
  }

  sortBy(column) {
    if (kept.sort === column.key) kept.order = kept.order === "asc" ? "desc" : "asc";
    else Object.assign(kept, { sort: column.key, order: column.down ? "desc" : "asc" });
    this.restart();
    this.head.children[columns.indexOf(column)].querySelector("button")?.focus();
  }

  restart() {
    replace("/", chosen());
    this.drawMovers();
    this.drawHead();
    this.rows.restart();
  }

  drawMovers() { this.movers.draw(kept.class, kept.method); }

  answered(reply) {
    Object.assign(this, { total: reply.total, failed: "", known: true });
    this.movers.update(reply.communities);
    const names = new Set([...this.methods, ...reply.communities.flatMap((row) => row.methods)]);
    if (names.size === this.methods.length) return;
    this.methods = [...names];
    this.methodPick.hidden = names.size < 2;
    this.method.replaceChildren(h("option", { value: "" }, "main"),
      ...this.methods.map((m) => h("option", { value: m }, m)));
    this.method.value = kept.method;
  }

  // drawAround draws the head and foot of the list.
  drawAround() {
    const { matched } = this.rows, narrowed = kept.q || kept.flag || kept.method;
    setAttr(this.table, "aria-rowcount", String(matched + 1));
    setText(this.summary, narrowed ? `${count(matched)} of ${count(this.total)}` : count(matched));
    this.summary.hidden = !this.known;
    this.empty.hidden = matched > 0 || (!this.known && !this.failed);
    this.table.hidden = !this.empty.hidden;
    this.drawWords();
  }

  drawWords() {
    const next = this.failed ? [`No answer from the server: ${this.failed}`]
      : emptyWords(kept, this, this.info);
    const text = next.map((x) => x.textContent ?? x).join();
    if (text !== this.words) this.empty.replaceChildren(...next);
    this.words = text;
    const nothing = this.empty.hidden && noEvents(this.status);
    if (nothing !== this.hint.hidden) return;
    this.hint.hidden = !nothing;
    this.hint.replaceChildren(...(nothing ? emptyWords({}, this, this.info) : []));
  }

  async saveRows() {
    const url = apiURL("/api/v1/communities");
    for (const [field, value] of Object.entries({ ...chosen(), limit: "all", format: "csv" })) {
      if (value !== "") url.searchParams.set(field, value);
    }
    const reply = await fetch(url);
    if (reply.ok) download("communities.csv", await reply.blob());
    else setText(this.summary, `not saved: ${reply.status}`);
  }

  update(status) {
    this.status = status;
    if (!this.rows.matched) this.rows.draw(true);
    this.drawWords();
    if (status.estimated === this.estimated) return;
    this.estimated = status.estimated;
    this.rows.need(true);
  }

  stop() {
    clearTimeout(this.typing);
    for (const timer of this.timers) clearInterval(timer);
    document.removeEventListener("keydown", this.slash);
    this.rows.stop();
  }
}

export function communities(info, at) {
  const list = new List(info, at);
  return {
    el: list.el,
    title: "Communities",
    names: [],
    async mounted() {
      list.drawHead();
      list.drawMovers();
      await list.rows.begin(kept.top);
    },
    refresh() { list.rows.need(true); },
    status(status) { list.update(status); },
    unmount() { list.stop(); },
  };
}
