// Alerts: firing ones, beginnings and ends, rules, and delivery.

import { get } from "./api.js";
import { h, setText } from "./dom.js";
import { community, link } from "./address.js";
import { classNamed, count, named, time } from "./format.js";
import { silences } from "./silence.js";

const refreshEvery = 2000;

// often says how many false alarms a month are expected.
function often(n) {
  if (!(n > 0)) return "";
  return `${n < 10 ? n.toPrecision(2) : count(Number(n.toPrecision(2)))} a month`;
}

// table returns a card with a table that fill fills, and a text for an empty one.
function table(title, heads, empty, kind) {
  const body = h("tbody"), note = h("p", { class: "quiet" }, empty);
  const head = h("tr", {}, heads.map((t) => h("th", { scope: "col" }, t)));
  const grid = h("table", { class: kind }, h("thead", {}, head), body);
  const card = h("div", { class: "card scroll" }, h("h2", {}, title), grid, note);
  return { card, note, grid, heads, body };
}

const tables = () => ({
  now: table(
    "Firing and pending",
    ["State", "Rule", "Community", "Class", "Since", "When it began", "Now"],
    "No alert fires.",
    "stack firing",
  ),
  past: table(
    "Began and ended",
    ["State", "Rule", "Community", "Class", "Log time", "Why"],
    "Nothing has happened since the start.",
    "stack",
  ),
  rules: table(
    "Rules",
    ["Rule", "Firing", "Pending", "Inactive", "False alarms to expect", "Silent", "Why"],
    "No rules are configured; see alerts in the configuration.",
    "figures rules",
  ),
  delivery: table(
    "Delivery",
    ["Target", "Queue", "Attempts", "Last error"],
    "No targets; see notify in the configuration.",
    "figures",
  ),
});

// lead goes to a community at the moment of a transition, with its class.
function lead(info, x) {
  const k = info.classes.indexOf(x.class);
  return h(
    "a",
    {
      href: community(x.community, {
        method: x.method,
        class: k < 0 ? "" : k,
        at: x.position || "",
      }),
    },
    named(x.community),
  );
}

// whySilent says which flag keeps how many alerts of a rule silent, and where.
function whySilent(rule) {
  const all = rule.inactive + rule.pending + rule.firing;
  return h(
    "ul",
    { class: "silent" },
    (rule.silent ?? []).map((s) =>
      h(
        "li",
        {},
        s.why === "no-data"
          ? "no data in "
          : [
              "suppressed by ",
              h("a", { href: link("/", { flag: s.why }) }, s.why || "a flag"),
              " in ",
            ],
        `${count(s.alerts)} of ${count(all)} (${count(s.communities)} ` +
          `${s.communities === 1 ? "community" : "communities"}): `,
        s.examples.map((name, i) => [
          i ? ", " : "",
          h("a", { href: community(name) }, named(name)),
        ]),
        s.communities > s.examples.length ? " …" : "",
      ),
    ),
  );
}

const chips = { firing: "chip wrong", resolved: "chip more" };
const state = (text) => h("span", { class: chips[text] || "chip" }, text);

// fill replaces the rows of a table.
function fill(part, rows) {
  part.note.hidden = rows.length > 0;
  part.grid.hidden = rows.length === 0;
  part.body.replaceChildren(
    ...rows.map((cells) =>
      h(
        "tr",
        {},
        cells.map((c, i) =>
          h(
            i === 0 ? "th" : "td",
            i === 0 ? { scope: "row" } : { "data-head": part.heads[i] },
            c,
          ),
        ),
      ),
    ),
  );
}

// noneFires says why no alert fires, if flags or missing data keep some from it.
function noneFires(rules) {
  const silent = rules.reduce((n, r) => n + r.suppressed + r.no_data, 0);
  const all = rules.reduce((n, r) => n + r.inactive + r.pending + r.firing, 0);
  if (!silent) return "No alert fires.";
  return `No alert fires. ${count(silent)} of ${count(all)} alerts cannot: their estimates are ` +
    "suppressed by a flag, or there is no data. The rules below say which.";
}

// subject returns the first cells of an alert.
const subject = (info, x) => [state(x.state), x.rule, lead(info, x), classNamed(x.class)];

function activeRow(info, quiet, x) {
  const silence = info.silences && h(
    "button",
    { type: "button", class: "plain", onclick: () => quiet.pick(x) },
    "Silence …",
  );
  return [
    ...subject(info, x),
    x.since ? time(x.since) : "",
    x.state === "firing" ? x.text : "",
    [x.now, silence && " ", silence],
  ];
}

const pastRow = (info, x) => [
  ...subject(info, x),
  x.time ? time(x.time) : "",
  x.text || x.reason,
];

const ruleRow = (r) => [
  r.rule,
  count(r.firing),
  count(r.pending),
  count(r.inactive),
  often(r.expected_per_month),
  count(r.suppressed + r.no_data),
  whySilent(r),
];

const targetRow = (t) => [
  t.name,
  count(t.queue),
  Object.entries(t.outcomes).map(([name, n]) => `${count(n)} ${name}`).join(", "),
  t.error,
];

export function alertsPage(info) {
  const notice = h("p", { class: "note", hidden: true });
  const quiet = silences(info);
  const { now, past, rules, delivery } = tables();
  const el = h(
    "section",
    { class: "alerts-page" },
    h("div", { class: "bar-tools" }, h("h1", {}, "Alerts")),
    notice,
    now.card,
    quiet.card,
    rules.card,
    past.card,
    delivery.card,
  );

  function draw(a) {
    setText(now.note, noneFires(a.rules));
    fill(now, a.active.map((x) => activeRow(info, quiet, x)));
    quiet.draw(a.silences ?? []);
    fill(past, a.transitions.map((x) => pastRow(info, x)));
    fill(rules, a.rules.map(ruleRow));
    fill(delivery, a.targets.map(targetRow));
  }

  let timer = 0, shown = "", gone = false;
  async function load() {
    clearTimeout(timer);
    try {
      const a = await get("/api/v1/alerts", { limit: 200 });
      notice.hidden = true;
      const key = JSON.stringify(a);
      if (key !== shown) { draw(a); shown = key; } // a row that has the focus keeps it
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
