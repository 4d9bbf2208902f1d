// The rows of a long list: only those in sight are in the document, and the pages of the server
// around them are kept.

import { get } from "./api.js";
import { h, setAttr } from "./dom.js";
import { reach } from "./marks.js";
import { makeRow } from "./row.js";

const pageSize = 100;
const pagesKept = 4; // before and after those in sight
const overscan = 6;

// Rows is the table. options: info, asked() returns the parameters of the list, shown() the class
// and the method, onAnswer(reply) and onFailure(message) hear of the server.
export class Rows {
  constructor(options) {
    Object.assign(this, options, { matched: 0, pages: new Map(), active: 0, clock: 0 });
    this.generation = 0;
    this.rows = new Map(); // index -> row in the document
    this.body = h("div", { class: "rows", role: "presentation" });
    this.viewport = h("div", { class: "viewport", tabindex: "-1", role: "rowgroup" }, this.body);
    this.frame = 0;
    this.viewport.addEventListener("scroll", () => this.drawLater(), { passive: true });
    this.viewport.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("focusin", (event) => {
      const index = Number(event.target.dataset?.index);
      if (Number.isInteger(index)) this.active = index;
    });
    this.resize = new ResizeObserver(() => this.drawLater());
  }

  get height() {
    return parseFloat(getComputedStyle(this.viewport).getPropertyValue("--row")) || 44;
  }

  // begin shows the list from a place on.
  async begin(top) {
    await this.fetchPage(Math.floor(top / this.height / pageSize));
    this.viewport.scrollTop = top;
    this.resize.observe(this.viewport);
  }

  restart() {
    this.pages.clear();
    this.generation++;
    this.viewport.scrollTop = 0;
    this.active = 0;
    this.draw();
  }

  visible() {
    const { height, viewport } = this;
    const first = Math.max(0, Math.floor(viewport.scrollTop / height) - overscan);
    const end = Math.ceil((viewport.scrollTop + viewport.clientHeight) / height) + overscan;
    return { first, last: Math.min(this.matched, end), height };
  }

  // need fetches the pages in sight that are missing, or all of them when they are stale.
  need(stale) {
    const { first, last } = this.visible();
    const low = Math.floor(first / pageSize);
    const high = Math.floor(Math.max(first, last - 1) / pageSize);
    for (let p = low; p <= high; p++) {
      const page = this.pages.get(p);
      if (!page || (stale && !page.loading)) this.fetchPage(p);
    }
    for (const p of this.pages.keys()) {
      if (p < low - pagesKept || p > high + pagesKept) this.pages.delete(p);
    }
  }

  async fetchPage(p) {
    const { generation } = this;
    const page = this.pages.get(p) || { list: null };
    page.loading = true;
    this.pages.set(p, page);
    try {
      const place = { offset: p * pageSize, limit: pageSize, trend: 24 };
      const reply = await get("/api/v1/communities", { ...this.asked(), ...place });
      if (generation !== this.generation) return;
      this.matched = reply.matched;
      this.clock = Date.parse(reply.now) - Date.now();
      page.list = reply.communities;
      this.onAnswer(reply);
    } catch (err) {
      if (generation !== this.generation) return;
      this.onFailure(err.message);
      if (!page.list) this.pages.delete(p);
    }
    page.loading = false;
    this.draw(true);
  }

  draw(keepPages) {
    const { first, last, height } = this.visible();
    this.body.style.height = `${this.matched * height}px`;
    this.active = Math.min(this.active, Math.max(0, this.matched - 1));
    for (const [i, row] of this.rows) {
      if (i < first || i >= last) { row.el.remove(); this.rows.delete(i); }
    }
    const known = [...this.pages.values()].flatMap((page) => page.list || []);
    const span = Math.max(...known.map((row) => reach(row.trend)), reach([]));
    for (let i = first; i < last; i++) this.drawRow(i, height, span);
    this.onDraw?.();
    if (!keepPages || this.matched) this.need(false);
  }

  drawRow(i, height, span) {
    const { k, method } = this.shown();
    let row = this.rows.get(i);
    if (!row) {
      row = makeRow(this.info, () => this.shown().method);
      this.rows.set(i, row);
      this.body.append(row.el);
    }
    row.el.style.transform = `translateY(${i * height}px)`;
    setAttr(row.el, "aria-rowindex", String(i + 2));
    row.link.dataset.index = i;
    row.link.tabIndex = i === this.active ? 0 : -1;
    const data = this.pages.get(Math.floor(i / pageSize))?.list?.[i % pageSize];
    row.set(data, k, Date.now() + this.clock, span, method);
  }

  drawLater() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.onScroll?.(this.viewport.scrollTop);
      this.draw();
    });
  }

  // move puts the focus on a row.
  move(to) {
    const { viewport, height } = this;
    const index = Math.max(0, Math.min(this.matched - 1, to)), top = index * height;
    this.active = index;
    if (top < viewport.scrollTop) viewport.scrollTop = top;
    else if (top + height > viewport.scrollTop + viewport.clientHeight) {
      viewport.scrollTop = top + height - viewport.clientHeight;
    }
    this.draw();
    this.rows.get(index)?.link.focus({ preventScroll: true });
  }

  key(event) {
    const index = Number(event.target.dataset?.index);
    if (!Number.isInteger(index)) return;
    const page = Math.max(1, Math.floor(this.viewport.clientHeight / this.height) - 1);
    const to = {
      ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page,
      Home: 0, End: this.matched - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.move(to);
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.resize.disconnect();
    this.generation = -1;
  }
}
