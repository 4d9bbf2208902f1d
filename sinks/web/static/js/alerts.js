// Alerts: what fires now, what began and ended, who is told; and their marks in the
// chart of a community.

import { get } from "./api.js";
import { h, setText, css } from "./dom.js";
import { community, link } from "./address.js";
import { count, time, label as named, percent, points, interval } from "./format.js";

const refreshEvery = 2000;
const labelMost = 28;

// points turns the change of a reason into percentage points, as everywhere else.
const reason = (text) => text.replace(/\bchange (-?\d*\.\d+)/, (_, x) => `change ${points(Number(x))} points`);

export function alertsPage(info) {
  const active = h("tbody"), past = h("tbody"), rules = h("tbody"), targets = h("tbody");
  const notice = h("p", { class: "note", hidden: true });
  const table = (title, heads, body, empty, kind = "") => {
    const note = h("p", { class: "quiet" }, empty);
    const grid = h("table", { class: kind }, h("thead", {}, h("tr", {}, heads.map((t) => h("th", { scope: "col" }, t)))), body);
    return { card: h("div", { class: "card scroll" }, h("h2", {}, title), grid, note), note, grid, heads };
  };
  const now = table("Firing and pending", ["State", "Rule", "Community", "Class", "Since", "Share", "Now"], active, "Nothing fires.", "stack");
  const before = table("Began and ended", ["State", "Rule", "Community", "Class", "Log time", "Why"], past, "Nothing has happened since the start.", "stack");
  const counts = table("Rules", ["Rule", "Firing", "Pending", "Inactive", "Silent", "Why"], rules, "No rules are configured; see alerts in the configuration.", "rules stack");
  const told = table("Who is told", ["Target", "Queue", "Attempts", "Last error"], targets, "Nobody is told; see notify in the configuration.", "figures");
  const el = h("section", { class: "alerts-page" }, h("div", { class: "bar-tools" }, h("h1", {}, "Alerts")), notice,
    now.card, counts.card, before.card, told.card);

  // lead goes to a community at the moment of a transition, with its class.
  function lead(x) {
    const k = info.classes.indexOf(x.class);
    return h("a", { href: community(x.community, { method: x.method, class: k < 0 ? "" : k, at: x.position || "" }) }, x.community);
  }

  // whySilent says which flag keeps how many alerts of a rule silent, and where.
  function whySilent(rule) {
    const all = rule.inactive + rule.pending + rule.firing;
    return h("ul", { class: "silent" }, (rule.silent ?? []).map((s) => h("li", {},
      s.why === "no-data" ? "no data in " : ["suppressed by ", h("a", { href: link("/", { flag: s.why }) }, s.why || "a flag"), " in "],
      `${count(s.alerts)} of ${count(all)} (${count(s.communities)} ${s.communities === 1 ? "community" : "communities"}): `,
      s.examples.map((name, i) => [i ? ", " : "", h("a", { href: community(name) }, name)]),
      s.communities > s.examples.length ? " …" : "")));
  }

  const chips = { firing: "chip grave", resolved: "chip more" };
  const state = (text) => h("span", { class: chips[text] || "chip" }, text);
  function fill(part, body, rows) {
    part.note.hidden = rows.length > 0;
    part.grid.hidden = rows.length === 0;
    body.replaceChildren(...rows.map((cells) => h("tr", {}, cells.map((c, i) => h(i === 0 ? "th" : "td", i === 0 ? { scope: "row" } : { "data-head": part.heads[i] }, c)))));
  }

  function draw(a) {
    const silent = a.rules.reduce((n, r) => n + r.suppressed + r.no_data, 0), all = a.rules.reduce((n, r) => n + r.inactive + r.pending + r.firing, 0);
    setText(now.note, `Nothing fires.${silent ? ` ${count(silent)} of ${count(all)} alerts cannot: their estimates are suppressed by a flag, or there is no data. The rules below say which.` : ""}`);
    fill(now, active, a.active.map((x) => [state(x.state), x.rule, lead(x), named(x.class), x.since ? time(x.since) : "",
      /^difference\(/.test(x.community) ? `${points(x.point)} points (${points(x.low)} to ${points(x.high)})` : `${percent(x.point)} (${interval(x.low, x.high)})`, x.now]));
    fill(before, past, a.transitions.map((x) => [state(x.state), x.rule, lead(x), named(x.class), x.time ? time(x.time) : "", reason(x.reason)]));
    fill(counts, rules, a.rules.map((r) => [r.rule, count(r.firing), count(r.pending), count(r.inactive), count(r.suppressed + r.no_data), whySilent(r)]));
    fill(told, targets, a.targets.map((t) => [t.name, count(t.queue),
      Object.entries(t.outcomes).map(([name, n]) => `${count(n)} ${name}`).join(", "), t.error]));
  }

  let timer = 0, shown = "", gone = false;
  async function load() {
    clearTimeout(timer);
    try {
      const a = await get("/api/v1/alerts", { limit: 200 });
      notice.hidden = true;
      const key = JSON.stringify(a);
      if (key !== shown) { shown = key; draw(a); } // a row that has the focus keeps it
    } catch (err) {
      notice.hidden = false;
      setText(notice, `No answer from the server: ${err.message}`);
    }
    if (!gone) timer = setTimeout(load, refreshEvery);
  }
  return {
    el,
    title: "Alerts",
    names: [],
    mounted() { load(); },
    refresh() { load(); },
    unmount() { gone = true; clearTimeout(timer); },
  };
}

// marks keeps the beginnings and ends of a community's alerts and draws them.
export function marks(name, redraw) {
  let list = [], notes = [], firing = [], timer = 0, gone = false;
  const el = h("p", { class: "banner", role: "status", hidden: true });
  async function load() {
    clearTimeout(timer);
    try {
      const a = await get("/api/v1/alerts", { community: name, limit: 200 });
      const before = list.length ? list[0].id : "";
      const told = notes.length;
      list = a.transitions;
      notes = a.notes;
      firing = a.active.filter((x) => x.state === "firing");
      el.hidden = firing.length === 0;
      setText(el, firing.map((x) => `${x.rule} fires for ${named(x.class)}: ${reason(x.reason)}`).join(" · "));
      if ((list.length && list[0].id !== before) || notes.length !== told) redraw();
    } catch { /* the chart does without */ }
    if (!gone) timer = setTimeout(load, refreshEvery);
  }
  load();

  // draw puts a line at each note, and at each transition of the classes shown; timed
  // says what the axis counts.
  function draw(u, timed, classes) {
    const ratio = devicePixelRatio, { ctx } = u;
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.lineWidth = ratio;
    const taken = []; // by labels: of those that would overlap the newest is drawn
    const line = (x, colour, dash, label, height) => {
      const value = timed ? Date.parse(x.time) / 1000 : x.position;
      if (!(value >= u.scales.x.min && value <= u.scales.x.max)) return;
      ctx.strokeStyle = ctx.fillStyle = css(colour);
      const at = Math.round(u.valToPos(value, "x", true)) + 0.5;
      ctx.setLineDash(dash.map((d) => d * ratio));
      ctx.beginPath();
      ctx.moveTo(at, u.bbox.top);
      ctx.lineTo(at, u.bbox.top + u.bbox.height);
      ctx.stroke();
      const width = ctx.measureText(label).width + 8 * ratio;
      const right = at + width > u.bbox.left + u.bbox.width, from = right ? at - width : at;
      if (taken.some((t) => t.height === height && from < t.to && t.from < from + width)) return;
      taken.push({ height, from, to: from + width });
      ctx.textAlign = right ? "right" : "left";
      ctx.fillText(label, at + (right ? -4 : 4) * ratio, u.bbox.top + height * ratio);
    };
    for (const x of notes) line(x, "--text", [1, 2], x.note.slice(0, labelMost), 37);
    for (const x of list) {
      if (!classes.includes(x.class)) continue;
      if (x.state === "firing") line(x, "--bad", [], x.rule.slice(0, labelMost), 24);
      else line(x, "--muted", [4, 3], "", 0);
    }
    ctx.restore();
  }
  // firings returns where alerts of a class began.
  const firings = (name) => list.filter((x) => x.state === "firing" && x.class === name).map((x) => x.position);
  return { el, draw, firings, refresh: load, unmount() { gone = true; clearTimeout(timer); } };
}
