// One community: its figures, chart, explanation, draws of people to label, and flags.

import { h, setText } from "./dom.js";
import { percent, interval, named } from "./format.js";
import { distinct, colour, colourValue } from "./palette.js";
import { figures } from "./figures.js";
import { Plot } from "./plot.js";
import { rangeBox } from "./range.js";
import { differences } from "./differences.js";
import { whom } from "./whom.js";
import { compare, linesMax, read as readLine, write as writeLine } from "./compare.js";
import { replace, whole, moment, iso } from "./address.js";
import { listAddress } from "./communities.js";
import { Alerts, dotsOf, levelsOf, marksOf } from "./marked.js";
import { History } from "./history.js";
import { saver } from "./save.js";
import { revised, settled, change } from "./series.js";
import { Why } from "./why.js";

const redrawEvery = 250;
const classesFirst = 3; // lines shown at first when there are many classes
const day = 86400;

// readState takes the state of the view from the address.
function readState({ query }, k) {
  const list = (query.get("show") || "").split(",").filter((x) => /^\d+$/.test(x)).map(Number);
  const shown = list.filter((i) => i < k);
  return {
    method: query.get("method") || "", k: whole(query, "class", k), at: whole(query, "at"),
    shown: shown.length ? new Set(shown) : null, range: whole(query, "range") ?? 0,
    from: moment(query, "from"), to: moment(query, "to"), revised: query.has("revised"),
    others: query.getAll("with").map(readLine).filter(Boolean).slice(0, linesMax - 1),
    ends: [whole(query, "a"), whole(query, "b")], missing: "", loaded: false,
  };
}

class Detail {
  constructor(info, at, follow) {
    const { name } = at;
    Object.assign(this, { info, at, name, follow, until: null });
    this.state = readState(at, info.classes.length);
    this.history = new History(name, this.state);
    this.alerts = new Alerts(at.about || name, () => this.drawLater());
    this.why = new Why(info, name, (ends) => this.chosen(ends));
    this.plot = new Plot({
      label: `Shares of ${named(name)} over time; the table below holds the latest figures`,
      overlay: (u, timed) => this.why.marks(u, timed),
      onZoom: (range) =>
        this.setRange({ range: 0, from: range && range[0], to: range && range[1] }),
      onPick: (position) => this.why.pick(position),
    });
    this.range = rangeBox((next) => this.setRange(next));
    this.parts = figures(info);
    this.lines = compare(name, (others) => {
      this.state.others = others;
      this.changed(true);
      this.follow();
    });
    this.gaps = differences(name);
    this.save = saver(info, () => this.shownForSave());
    this.build();
  }

  build() {
    const { info, name, parts, lines, save, plot } = this;
    this.methods = h("select", { "aria-label": "Method", onchange: () => {
      Object.assign(this.state, { method: this.methods.value, ends: [null, null] });
      this.changed(true);
    } });
    this.classes = h("select", { "aria-label": "Class", onchange: () => {
      this.state.k = Number(this.classes.value);
      this.state.shown?.add(this.state.k);
      this.changed();
    } }, info.labels.map((label, i) => h("option", { value: i }, label)));
    this.toggles = h("div", {
      class: "toggles",
      role: "group",
      "aria-label": "Classes in the chart",
    });
    this.notice = h("p", { class: "note", role: "status" }, "Loading the history …");
    this.definition = h("p", { class: "definition", hidden: true });
    this.revisedButton = h(
      "button",
      {
        type: "button",
        class: "plain",
        hidden: true,
        title: "Earlier shares, by the present knowledge of the classifier",
        onclick: () => {
          this.state.revised = !this.state.revised;
          this.changed();
        },
      },
      "Revised line",
    );
    const tools = h("div", { class: "chart-right" }, lines.open, save.open, this.revisedButton,
      this.range.el);
    this.content = h("div", { class: "detail-body", hidden: true }, parts.head,
      h("div", { class: "card plot" },
        h("div", { class: "chart-tools" }, this.toggles, lines.chips, tools),
        lines.form, save.form, this.range.fields, plot.el, plot.hover, this.gaps.el),
      this.why.el, whom(name, info).el, parts.table, parts.flags);
    const pick = (words, select) => h("label", { class: "pick" }, h("span", {}, words), select);
    this.el = h(
      "section",
      { class: "detail" },
      h("p", { class: "crumb" }, h("a", { href: listAddress() }, "← Communities")),
      h(
        "div",
        { class: "bar-tools" },
        h("h1", { title: name }, named(name)),
        h("div", { class: "tools" }, pick("Class", this.classes), pick("Method", this.methods)),
      ),
      this.definition,
      this.alerts.el,
      this.notice,
      this.content,
    );
  }

  address() {
    const s = this.state, free = [s.from, s.to].map((x) => (x === null ? null : iso(x)));
    const show = s.shown && !s.others.length ? [...s.shown].sort((a, b) => a - b).join() : "";
    replace(this.at.path, {
      method: s.method === this.history.main ? "" : s.method, class: s.k, show,
      range: s.range || "", from: free[0], to: free[1], a: s.ends[0], b: s.ends[1],
      with: s.others.map(writeLine), revised: s.revised ? 1 : "",
    });
  }

  // changed draws the user's choice, after reading more if need be.
  changed(more) {
    this.address();
    if (more) this.load();
    else this.draw();
  }

  setRange(next) {
    Object.assign(this.state, next);
    this.changed(true);
  }

  chosen(ends) {
    if (ends) {
      this.state.ends = ends;
      this.address();
    }
    this.plot.redraw();
  }

  async load() {
    const s = this.state, sought = s.at !== null;
    try {
      const { about, latest } = await this.history.load();
      setText(this.definition, about.definition ? `Members: ${about.definition}` : "");
      this.definition.hidden = !about.definition;
      s.k ??= this.info.classes.length === 2 || latest.suppressed ? 0
        : latest.prevalence.reduce((best, x, i, all) => (x > all[best] ? i : best), 0);
      s.missing = "";
      if (sought) this.address(); // it names the part of time about the moment now
    } catch (err) {
      s.missing = err.text || (err.status === 404
        ? "No estimate of this community yet. It may not have members, or its name is " +
          "another; names are case-sensitive." : `No answer from the server: ${err.message}`);
    }
    s.loaded = true;
    this.draw();
  }

  // tint chooses the classes to show, and returns the colour of each.
  tint(latest) {
    const s = this.state, k = this.info.classes.length;
    if (!s.shown) {
      const order = [...this.info.classes.keys()]
        .sort((a, b) => (latest.prevalence?.[b] ?? 0) - (latest.prevalence?.[a] ?? 0));
      s.shown = new Set(k === 2 ? [s.k] : k <= classesFirst ? order
        : [s.k, ...order.filter((i) => i !== s.k)].slice(0, classesFirst));
    }
    return distinct(this.info.slots, [...s.shown].sort((a, b) => a - b));
  }

  drawToggles(latest, tint) {
    const s = this.state, { labels, slots } = this.info, { children } = this.toggles;
    for (let i = children.length; i < labels.length; i++) {
      this.toggles.append(h("button", { type: "button", onclick: () => {
        if (!s.shown.delete(i)) s.shown.add(i);
        this.changed();
      } }, h("i"), h("span", {}, labels[i]), h("b")));
    }
    this.toggles.hidden = s.others.length > 0;
    labels.forEach((_, i) => {
      children[i].className = `toggle ${colour(tint.get(i) ?? slots[i])}`;
      children[i].setAttribute("aria-pressed", String(s.shown.has(i)));
      setText(children[i].lastChild, percent(latest.prevalence?.[i]));
    });
  }

  // visible returns the points of a series in the part of time that is shown.
  visible(series) {
    const s = this.state, { current } = this.history;
    if (s.from !== null || s.to !== null) return series.between(s.from, s.to);
    return series.between(s.range && current.timed ? current.last.at - s.range : null, null);
  }

  // drawn returns the lines of the chart.
  drawn(tint) {
    const s = this.state, { history, info } = this, { plain } = history;
    const value = (series, i) => {
      const e = series?.last?.e;
      return e ? `${percent(e.prevalence?.[i])} (${interval(e.low?.[i], e.high?.[i])})` : "";
    };
    if (s.others.length) {
      return history.lines.filter((l) => l.series).map((l, i) => ({
        label: l.name === this.name ? l.method : `${named(l.name)} ${l.method}`,
        value: value(l.series, s.k), stroke: colourValue(i), points: this.visible(l.series), k: s.k,
      }));
    }
    const points = this.visible(history.current), later = s.revised && revised(points);
    return [...s.shown].sort((a, b) => a - b).map((i) => ({
      label: info.labels[i], value: value(history.current, i), stroke: colourValue(tint.get(i)),
      points, k: i, plain: plain && this.visible(plain), revised: later || null,
    }));
  }

  // chart returns all that is drawn: by the chart of the page, and by the picture that is saved.
  chart(tint) {
    const s = this.state, { history, info, alerts } = this, { current, audit } = history;
    const main = this.visible(current), lines = this.drawn(tint), { timed } = current;
    const shown = (s.others.length ? [s.k] : [...s.shown]).map((i) => info.classes[i]);
    const dots = audit && !s.others.length ? dotsOf(this.visible(audit), timed, lines) : [];
    return {
      lines, timed, dots, to: s.to, until: timed ? this.until : null,
      from: s.from ?? (s.range && timed ? current.last.at - s.range : null),
      marks: marksOf(alerts, main, timed, shown, s.k), levels: levelsOf(alerts, shown),
      confidence: Math.round(100 * (current.last.e.confidence || 0.9)),
    };
  }

  drawChart(tint) {
    const s = this.state, { history, info } = this;
    const of = (l) => ({ ...l, text: percent(l.series?.last?.e.prevalence?.[s.k]),
      missing: history.failed.get(writeLine(l)) });
    this.lines.set(history.lines.map(of), history.own, s.method);
    const chart = this.chart(tint), main = chart.lines[0]?.points ?? [];
    const same = s.others.filter((l) => l.method === s.method && l.name !== this.name);
    this.gaps.set(s.method, [...new Set(same.map((l) => l.name))], [s.from, s.to], s.k,
      Math.max(...history.lines.map((l) => l.series?.last?.position ?? 0)));
    this.why.set(main, s.method, s.k, s.ends, this.alerts.firings(info.classes[s.k]));
    this.revisedButton.hidden = s.others.length > 0 || !revised(main);
    this.revisedButton.setAttribute("aria-pressed", String(s.revised));
    this.plot.set(chart);
  }

  draw() {
    const s = this.state, { history } = this;
    if (!s.loaded) return; // one record is no chart yet
    if (history.own.length !== this.methods.children.length) {
      this.methods.replaceChildren(...history.own.map((m) => h("option", { value: m }, m)));
    }
    this.methods.value = s.method;
    this.classes.value = String(s.k ?? 0);
    this.range.set(s);
    const series = history.current;
    this.notice.hidden = !s.missing;
    setText(this.notice, s.missing);
    this.content.hidden = !series || Boolean(s.missing);
    if (this.content.hidden) return;
    const { last } = series, { e } = last;
    this.content.classList.toggle("suppressed", Boolean(e.suppressed));
    this.content.classList.toggle("blank", series.points.every((p) => p.e.suppressed));
    this.parts.set(e, history.before, history.plain?.last?.e, s.k, this.dayChange(series));
    const tint = this.tint(e);
    this.drawToggles(e, tint);
    this.drawChart(tint);
  }

  // dayChange returns by how much news moved the class within a day, once the warm-up is over. It
  // is null where the part of time that is shown ends before the newest record.
  dayChange(series) {
    const { points, last } = series, { k, to } = this.state;
    if (!series.timed || to !== null || !last.e.prevalence?.length) return null;
    const shown = points.filter((p) => p.e.prevalence?.length);
    const first = Math.max(settled(shown, k), shown.findLastIndex((p) => p.at <= last.at - day));
    if (first >= shown.length - 1) return null;
    return {
      change: change(shown, first, shown.length - 1, k),
      seconds: last.at - shown[first].at,
    };
  }

  shownForSave() {
    const s = this.state, { history, info } = this;
    const lines = [{ name: this.name, method: s.method }, ...s.others];
    const shown = s.others.length ? [s.k] : [...s.shown];
    return {
      name: this.name, lines, span: history.span(history.current.last.e),
      chart: this.chart(this.tint(history.current.last.e)),
      classes: shown.map((i) => info.classes[i]).join(),
      title: s.others.length ? `${info.labels[s.k]}: ${lines.map((l) => named(l.name)).join(", ")}`
        : named(this.name),
      source: info.pipeline || "gqlstream",
    };
  }

  drawLater() {
    if (this.timer) return;
    this.timer = setTimeout(() => { this.timer = 0; this.draw(); }, redrawEvery);
  }

  // refresh reads the records since the last request.
  async refresh() {
    this.alerts.refresh();
    const first = !this.state.loaded;
    if (first) await this.begun;
    if (!first || this.state.missing) return this.load();
    await this.history.missed();
    return this.drawLater();
  }

  async estimates(list) {
    const { history, state } = this, shown = history.current?.last?.e;
    history.accept(list);
    if (state.missing || !state.method && state.loaded) return this.load();
    if (shown && history.current.last.e !== shown) {
      await history.newest().catch(() => { history.before = null; });
    }
    return this.drawLater();
  }

  // status moves the end of the chart: the newest value is in force up to the log's time.
  status(status) {
    const until = Date.parse(status.log_time ?? "") / 1000;
    if (!Number.isFinite(until) || until === this.until) return;
    this.until = until;
    if (this.state.loaded && !this.state.missing) this.drawLater();
  }

  stop() {
    clearTimeout(this.timer);
    for (const part of [this.alerts, this.why, this.lines, this.gaps]) part.stop();
    this.plot.destroy();
  }
}

export function detail(info, at, follow) {
  const page = new Detail(info, at, follow), { name } = at;
  return {
    el: page.el,
    title: named(name),
    get names() { return [...new Set([name, ...page.state.others.map((o) => o.name)])]; },
    mounted() { page.begun = page.load(); },
    refresh() { return page.refresh(); },
    estimates(list) { return page.estimates(list); },
    status(status) { page.status(status); },
    theme() { page.draw(); page.plot.rebuild(); },
    unmount() { page.stop(); },
  };
}
