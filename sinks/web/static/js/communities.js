// The list of communities. The server searches, sorts and pages; this view keeps
// the pages around the visible rows and draws only those rows.

import { get } from "./api.js";
import { h, setText, setAttr } from "./dom.js";
import { percent, interval, count, compact, age } from "./format.js";
import { bar, whisker, trend, legend, chip } from "./marks.js";

const pageSize = 100;
const overscan = 6;
const refreshEvery = 1000;

const columns = [
  { key: "name", label: "Community" },
  { key: "", label: "Prevalence", hide: "narrow" },
  { key: "share", label: "Share", down: true },
  { key: "width", label: "Interval", hide: "narrow", down: true },
  { key: "", label: "Trend", hide: "medium" },
  { key: "members", label: "Members", down: true, number: true },
  { key: "flags", label: "Flags", down: true },
  { key: "updated", label: "Updated", hide: "narrow", down: true, number: true },
];

// What the user chose survives going to a community and back.
const kept = { q: "", sort: "name", order: "asc", class: 0, top: 0 };

export function communities(info) {
  const state = { matched: 0, total: 0, pages: new Map(), active: 0, writes: -1, clock: 0, failed: "" };
  if (kept.class >= info.classes.length) kept.class = 0;
  const rows = new Map(); // index -> row on the page

  const search = h("input", { type: "search", placeholder: "Search communities", "aria-label": "Search communities", value: kept.q, maxlength: 100, spellcheck: "false", autocomplete: "off" });
  const choice = h("select", { "aria-label": "Class shown" }, info.classes.map((name, k) => h("option", { value: k, selected: k === kept.class }, name)));
  const summary = h("span", { class: "summary", role: "status" });
  const head = h("div", { class: "row head", role: "row" });
  const body = h("div", { class: "rows", role: "presentation" });
  const viewport = h("div", { class: "viewport", tabindex: "-1", role: "rowgroup" }, body);
  const empty = h("p", { class: "note", hidden: true });
  const table = h("div", { class: "table", role: "table", "aria-label": "Communities" }, h("div", { role: "rowgroup" }, head), viewport);
  const el = h("section", { class: "communities" },
    h("div", { class: "bar-tools" }, h("h1", {}, "Communities"), summary,
      h("div", { class: "tools" }, search, h("label", { class: "pick" }, h("span", {}, "Class"), choice))),
    legend(info.labels), table, empty);

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
        q: kept.q, sort: kept.sort, order: kept.order, class: kept.class, offset: p * pageSize, limit: pageSize, trend: 24,
      });
      if (generation !== state.generation) return;
      Object.assign(state, { matched: reply.matched, total: reply.total, failed: "", clock: Date.parse(reply.now) - Date.now(), answered: true });
      page.list = reply.communities;
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
    for (const [i, row] of rows) if (i < first || i >= last) { row.el.remove(); rows.delete(i); }
    for (let i = first; i < last; i++) {
      let row = rows.get(i);
      if (!row) { row = makeRow(info); rows.set(i, row); body.append(row.el); }
      row.el.style.transform = `translateY(${i * height}px)`;
      setAttr(row.el, "aria-rowindex", String(i + 2));
      row.link.dataset.index = i;
      row.link.tabIndex = i === state.active ? 0 : -1;
      row.set(state.pages.get(Math.floor(i / pageSize))?.list?.[i % pageSize], kept.class, Date.now() + state.clock);
    }
    setText(summary, kept.q ? `${count(state.matched)} of ${count(state.total)}` : count(state.total));
    summary.hidden = !state.answered;
    empty.hidden = state.matched > 0 || (!state.answered && !state.failed);
    setText(empty, state.failed ? `No answer from the server: ${state.failed}` : kept.q ? "No community has this in its name." : "No estimates yet. They appear with the first emission of the pipeline.");
    table.hidden = !empty.hidden;
    if (!keepPages || state.matched) need(false);
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
  const clock = setInterval(() => draw(true), 5000);
  let stale = 0;

  return {
    el,
    title: "Communities",
    stream: { communities: [], events: ["status"] },
    async mounted() {
      drawHead();
      await fetchPage(Math.floor(kept.top / rowHeight() / pageSize));
      viewport.scrollTop = kept.top;
      resize.observe(viewport);
    },
    refresh() { need(true); },
    status(status) {
      if (status.writes === state.writes || stale) return;
      state.writes = status.writes;
      stale = setTimeout(() => { stale = 0; need(true); }, refreshEvery / 4);
    },
    unmount() {
      clearTimeout(stale);
      clearTimeout(typing);
      clearInterval(clock);
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
  const shares = bar(info.labels), range = whisker(), line = trend();
  const value = h("strong"), bounds = h("small"), members = h("span"), flags = h("span", { class: "chips" }), updated = h("span");
  const cell = (name, ...children) => h("div", { role: "cell", class: `c-${name}` }, children);
  const el = h("div", { class: "row", role: "row" },
    cell("community", link), cell("prevalence", shares.el), cell("share", value, bounds), cell("interval", range.el),
    cell("trend", line.el), cell("members", members), cell("flags", flags), cell("updated", updated));
  let shownFlags = null;
  return {
    el,
    link,
    set(row, k, now) {
      el.classList.toggle("loading", !row);
      if (!row) {
        setText(link, "");
        link.removeAttribute("href");
        return;
      }
      const e = row.estimate;
      el.classList.toggle("suppressed", Boolean(e.suppressed));
      setText(link, row.name);
      setAttr(link, "href", `#/c/${encodeURIComponent(row.name)}`);
      setAttr(link, "title", row.name);
      shares.set(e.prevalence);
      setText(value, e.suppressed ? "suppressed" : percent(e.prevalence?.[k]));
      setText(bounds, interval(e.low?.[k], e.high?.[k]));
      range.set(e.prevalence?.[k], e.low?.[k], e.high?.[k], k);
      line.set(row.trend, k);
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
