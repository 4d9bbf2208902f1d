// The list of communities. The server searches, sorts and pages; this view keeps
// the pages around the visible rows and draws only those rows.

import { apiURL, get } from "./api.js";
import { h, setText, setAttr, download } from "./dom.js";
import { community, link as linkTo, replace, whole } from "./address.js";
import { percent, points, interval, count, compact, age } from "./format.js";
import { bar, whisker, trend, reach, legend, chip } from "./marks.js";
import { distinct } from "./palette.js";
import { emptyWords, noEvents } from "./empty.js";

const pageSize = 100;
const overscan = 6;
const moversShown = 5;
const moversLeast = 0.005; // a share that moved by less is no news
const moversEvery = 10000;

const columns = [
  { key: "name", label: "Community" },
  { key: "", label: "Prevalence", hide: "narrow" },
  { key: "share", label: "Share", down: true },
  { key: "width", label: "Interval", hide: "narrow", down: true },
  { key: "change", label: "Trend", hide: "medium", down: true },
  { key: "members", label: "Members", down: true, number: true },
  { key: "flags", label: "Flags", down: true },
  { key: "updated", label: "Updated", hide: "narrow", down: true, number: true },
];

// What the user chose survives going to a community and back; it is in the address.
const kept = { q: "", flag: "", method: "", sort: "name", order: "asc", class: 0, top: 0 };

const chosen = () => ({ q: kept.q, flag: kept.flag, method: kept.method, sort: kept.sort === "name" ? "" : kept.sort, order: kept.order === "asc" ? "" : kept.order, class: kept.class || "" });

// listAddress leads back to the list as it was left.
export const listAddress = () => linkTo("/", chosen());

// readAddress takes the choices from the address; what it does not name is as at first.
function readAddress(query, info) {
  const before = listAddress();
  const sort = query.get("sort");
  Object.assign(kept, {
    q: query.get("q") ?? "", flag: query.get("flag") ?? "", method: query.get("method") ?? "",
    sort: columns.some((c) => c.key && c.key === sort) ? sort : "name", order: query.get("order") === "desc" ? "desc" : "asc",
    class: whole(query, "class", info.classes.length) ?? 0,
  });
  if (listAddress() !== before) kept.top = 0;
}

export function communities(info, at) {
  const state = { matched: 0, total: 0, pages: new Map(), active: 0, estimated: -1, clock: 0, failed: "", methods: [], status: null };
  readAddress(at.query, info);
  const rows = new Map(); // index -> row on the page

  const search = h("input", { type: "search", placeholder: "Search communities", "aria-label": "Search communities", value: kept.q, maxlength: 100, spellcheck: "false", autocomplete: "off" });
  const choice = h("select", { "aria-label": "Class shown" }, info.labels.map((name, k) => h("option", { value: k, selected: k === kept.class }, name)));
  const flags = h("select", { "aria-label": "Flag", onchange: () => { kept.flag = flags.value; restart(); } },
    [["", "All"], ["any", "With a flag"], ...info.flags.map((f) => [f.name, f.name])].map(([value, text]) => h("option", { value, selected: value === kept.flag }, text)));
  const methods = h("select", { "aria-label": "Method", onchange: () => { kept.method = methods.value; restart(); } });
  const methodPick = h("label", { class: "pick", hidden: true }, h("span", {}, "Method"), methods);
  const save = h("button", { type: "button", class: "plain", title: "Save the communities of this list as CSV", onclick: saveRows }, "CSV");
  const movers = h("p", { class: "movers", hidden: true });
  const hint = h("div", { class: "hint", hidden: true });
  const summary = h("span", { class: "summary", role: "status" });
  const head = h("div", { class: "row head", role: "row" });
  const body = h("div", { class: "rows", role: "presentation" });
  const viewport = h("div", { class: "viewport", tabindex: "-1", role: "rowgroup" }, body);
  const empty = h("div", { class: "note", hidden: true });
  const table = h("div", { class: "table", role: "table", "aria-label": "Communities" }, h("div", { role: "rowgroup" }, head), viewport);
  const el = h("section", { class: "communities" },
    h("div", { class: "bar-tools" }, h("h1", {}, "Communities"), summary,
      h("div", { class: "tools" }, search, h("label", { class: "pick" }, h("span", {}, "Flag"), flags), methodPick, h("label", { class: "pick" }, h("span", {}, "Class"), choice), save)),
    hint, movers, legend(info), table, empty);

  const rowHeight = () => parseFloat(getComputedStyle(el).getPropertyValue("--row")) || 44;

  function drawHead() {
    head.replaceChildren(...columns.map((c) => {
      const sorted = c.key && kept.sort === c.key;
      const cell = h("div", { role: "columnheader", class: `c-${c.label.toLowerCase()}`, "aria-sort": c.key ? (sorted ? (kept.order === "asc" ? "ascending" : "descending") : "none") : undefined });
      const label = c.label === "Share" ? info.labels[kept.class] : c.label;
      if (!c.key) cell.append(label);
      else cell.append(h("button", { type: "button", onclick: () => sortBy(c), title: `Sort by ${label}` }, h("span", {}, label), h("span", { class: "arrow", "aria-hidden": "true" }, sorted ? (kept.order === "asc" ? "↑" : "↓") : "")));
      return cell;
    }));
  }

  function sortBy(column) {
    if (kept.sort === column.key) kept.order = kept.order === "asc" ? "desc" : "asc";
    else { kept.sort = column.key; kept.order = column.down ? "desc" : "asc"; }
    const focused = columns.indexOf(column);
    restart();
    head.children[focused].querySelector("button")?.focus();
  }

  function restart() {
    replace("/", chosen());
    drawMovers();
    state.pages.clear();
    state.generation = (state.generation || 0) + 1;
    viewport.scrollTop = 0;
    state.active = 0;
    drawHead();
    draw();
  }

  function visible() {
    const height = rowHeight();
    const first = Math.max(0, Math.floor(viewport.scrollTop / height) - overscan);
    const last = Math.min(state.matched, Math.ceil((viewport.scrollTop + viewport.clientHeight) / height) + overscan);
    return { first, last, height };
  }

  // need fetches the visible pages that are missing, or all of them when stale.
  function need(stale) {
    const { first, last } = visible();
    const low = Math.floor(first / pageSize), high = Math.floor(Math.max(first, last - 1) / pageSize);
    for (let p = low; p <= high; p++) {
      const page = state.pages.get(p);
      if (!page || (stale && !page.loading)) fetchPage(p);
    }
    for (const p of state.pages.keys()) if (p < low - 4 || p > high + 4) state.pages.delete(p);
  }

  async function fetchPage(p) {
    const generation = state.generation;
    const page = state.pages.get(p) || { list: null };
    page.loading = true;
    state.pages.set(p, page);
    try {
      const reply = await get("/api/v1/communities", {
        ...chosen(), offset: p * pageSize, limit: pageSize, trend: 24,
      });
      if (generation !== state.generation) return;
      Object.assign(state, { matched: reply.matched, total: reply.total, failed: "", clock: Date.parse(reply.now) - Date.now(), answered: true });
      page.list = reply.communities;
      knowMethods(reply.communities);
    } catch (err) {
      if (generation !== state.generation) return;
      state.failed = err.message;
      if (!page.list) state.pages.delete(p);
    }
    page.loading = false;
    draw(true);
  }

  function draw(keepPages) {
    const { first, last, height } = visible();
    body.style.height = `${state.matched * height}px`;
    setAttr(table, "aria-rowcount", String(state.matched + 1));
    state.active = Math.min(state.active, Math.max(0, state.matched - 1));
    const span = Math.max(...[...state.pages.values()].flatMap((page) => page.list || []).map((row) => reach(row.trend)), reach([]));
    for (const [i, row] of rows) if (i < first || i >= last) { row.el.remove(); rows.delete(i); }
    for (let i = first; i < last; i++) {
      let row = rows.get(i);
      if (!row) { row = makeRow(info); rows.set(i, row); body.append(row.el); }
      row.el.style.transform = `translateY(${i * height}px)`;
      setAttr(row.el, "aria-rowindex", String(i + 2));
      row.link.dataset.index = i;
      row.link.tabIndex = i === state.active ? 0 : -1;
      row.set(state.pages.get(Math.floor(i / pageSize))?.list?.[i % pageSize], kept.class, Date.now() + state.clock, span);
    }
    setText(summary, kept.q || kept.flag || kept.method ? `${count(state.matched)} of ${count(state.total)}` : count(state.total));
    summary.hidden = !state.answered;
    empty.hidden = state.matched > 0 || (!state.answered && !state.failed);
    drawWords();
    table.hidden = !empty.hidden;
    if (!keepPages || state.matched) need(false);
  }

  let words = "";
  function drawWords() {
    const next = state.failed ? [`No answer from the server: ${state.failed}`] : emptyWords(kept, state, info);
    const text = next.map((x) => x.textContent ?? x).join();
    if (text !== words) { words = text; empty.replaceChildren(...next); }
    const nothing = empty.hidden && noEvents(state.status);
    if (nothing === hint.hidden) { hint.hidden = !nothing; hint.replaceChildren(...(nothing ? emptyWords({}, state, info) : [])); }
  }

  function knowMethods(list) {
    const names = new Set([...state.methods, ...list.flatMap((row) => row.methods)]);
    if (names.size === state.methods.length) return;
    state.methods = [...names];
    methodPick.hidden = names.size < 2;
    methods.replaceChildren(h("option", { value: "" }, "main"), ...state.methods.map((m) => h("option", { value: m }, m)));
    methods.value = kept.method;
  }

  // drawMovers names the communities whose share moved furthest within a day.
  async function drawMovers() {
    let list = [];
    try {
      list = (await get("/api/v1/communities", { sort: "change", order: "desc", class: kept.class, method: kept.method, limit: moversShown })).communities;
    } catch { /* the list says it */ }
    const moved = list.filter((row) => Math.abs(row.change ?? 0) >= moversLeast);
    movers.hidden = moved.length === 0;
    movers.replaceChildren(h("span", {}, `${info.labels[kept.class]} moved most in a day:`), ...moved.map((row) =>
      h("a", { href: community(row.name, { class: kept.class || "", method: kept.method, from: row.since }), title: `since ${row.since}` }, row.name, h("b", {}, points(row.change)))));
  }

  async function saveRows() {
    const url = apiURL("/api/v1/communities");
    for (const [field, value] of Object.entries({ ...chosen(), limit: "all", format: "csv" })) if (value !== "") url.searchParams.set(field, value);
    const reply = await fetch(url);
    if (reply.ok) download("communities.csv", await reply.blob());
    else setText(summary, `not saved: ${reply.status}`);
  }

  function move(index) {
    index = Math.max(0, Math.min(state.matched - 1, index));
    state.active = index;
    const height = rowHeight();
    const top = index * height;
    if (top < viewport.scrollTop) viewport.scrollTop = top;
    else if (top + height > viewport.scrollTop + viewport.clientHeight) viewport.scrollTop = top + height - viewport.clientHeight;
    draw();
    rows.get(index)?.link.focus({ preventScroll: true });
  }

  viewport.addEventListener("keydown", (event) => {
    const index = Number(event.target.dataset?.index);
    if (!Number.isInteger(index)) return;
    const page = Math.max(1, Math.floor(viewport.clientHeight / rowHeight()) - 1);
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: state.matched - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(to);
  });
  body.addEventListener("focusin", (event) => {
    const index = Number(event.target.dataset?.index);
    if (Number.isInteger(index)) state.active = index;
  });

  let frame = 0;
  const redraw = () => { if (!frame) frame = requestAnimationFrame(() => { frame = 0; kept.top = viewport.scrollTop; draw(); }); };
  viewport.addEventListener("scroll", redraw, { passive: true });

  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => { kept.q = search.value.trim(); restart(); }, 150);
  });
  search.addEventListener("keydown", (event) => { if (event.key === "ArrowDown" && state.matched) { event.preventDefault(); move(0); } });
  choice.addEventListener("change", () => { kept.class = Number(choice.value); restart(); });
  const slash = (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|SELECT)$/.test(document.activeElement?.tagName)) return;
    event.preventDefault();
    search.focus();
  };
  document.addEventListener("keydown", slash);
  const resize = new ResizeObserver(redraw);
  const clock = setInterval(() => draw(true), 5000), moving = setInterval(drawMovers, moversEvery);

  return {
    el,
    title: "Communities",
    names: [],
    async mounted() {
      drawHead();
      drawMovers();
      await fetchPage(Math.floor(kept.top / rowHeight() / pageSize));
      viewport.scrollTop = kept.top;
      resize.observe(viewport);
    },
    refresh() { need(true); },
    status(status) {
      state.status = status;
      if (!state.matched) draw(true);
      drawWords();
      if (status.estimated === state.estimated) return;
      state.estimated = status.estimated;
      need(true);
    },
    unmount() {
      clearTimeout(typing);
      clearInterval(clock);
      clearInterval(moving);
      cancelAnimationFrame(frame);
      resize.disconnect();
      document.removeEventListener("keydown", slash);
      state.generation = -1;
    },
  };
}

// makeRow builds one row; set fills it, or empties it while it is not known.
function makeRow(info) {
  const link = h("a", { class: "name" });
  const shares = bar(info), range = whisker(), line = trend(), change = h("small");
  const value = h("strong"), bounds = h("small"), members = h("span"), flags = h("span", { class: "chips" }), updated = h("span");
  const cell = (name, ...children) => h("div", { role: "cell", class: `c-${name}` }, children);
  const el = h("div", { class: "row", role: "row" },
    cell("community", link), cell("prevalence", shares.el), cell("share", value, bounds), cell("interval", range.el),
    cell("trend", line.el, change), cell("members", members), cell("flags", flags), cell("updated", updated));
  let shownFlags = null;
  return {
    el,
    link,
    set(row, k, now, span) {
      el.classList.toggle("loading", !row);
      if (!row) {
        setText(link, "");
        link.removeAttribute("href");
        return;
      }
      const e = row.estimate;
      el.classList.toggle("suppressed", Boolean(e.suppressed));
      setText(link, row.name);
      const slot = distinct(info.slots, [k]).get(k);
      setAttr(link, "href", community(row.name, { class: k || "", method: kept.method }));
      setAttr(link, "title", row.name);
      shares.set(e.prevalence);
      setText(value, e.suppressed ? "suppressed" : percent(e.prevalence?.[k]));
      setText(bounds, interval(e.low?.[k], e.high?.[k]));
      range.set(e.prevalence?.[k], e.low?.[k], e.high?.[k], slot);
      line.set(row.trend, slot, span);
      setText(change, row.change === undefined ? "" : points(row.change));
      setAttr(change, "title", row.since ? `points since ${row.since}` : "");
      setText(members, e.suppressed ? "" : compact(e.members));
      setText(updated, age((now - Date.parse(row.updated)) / 1000));
      const key = (e.flags || []).join(" ");
      if (key !== shownFlags) {
        shownFlags = key;
        const list = (e.flags || []).filter((f, i, all) => all.findIndex((g) => g.split(":")[0] === f.split(":")[0]) === i);
        flags.replaceChildren(...list.slice(0, 2).map((f) => chip(f, info)), list.length > 2 ? h("span", { class: "chip more" }, `+${list.length - 2}`) : "");
      }
    },
  };
}
