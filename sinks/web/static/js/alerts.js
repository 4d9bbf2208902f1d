// Alerts: firing ones, beginnings and ends, rules, and delivery.

import { get } from "./api.js";
import { h, setText } from "./dom.js";
import { community, link } from "./address.js";
import { count, label, named, time } from "./format.js";
import { silences } from "./silence.js";

const refreshEvery = 2000;

// often says how many false alarms a month are expected.
function often(n) {
  if (!(n > 0)) return "";
  return `${n < 10 ? n.toPrecision(2) : count(Number(n.toPrecision(2)))} a month`;
}

export function alertsPage(info) {
  const active = h("tbody"), past = h("tbody"), rules = h("tbody"), targets = h("tbody");
  const notice = h("p", { class: "note", hidden: true });
  const quiet = silences(info);
  const table = (title, heads, body, empty, kind = "") => {
    const note = h("p", { class: "quiet" }, empty);
    const grid = h(
      "table",
      { class: kind },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((t) => h("th", { scope: "col" }, t)),
        ),
      ),
      body,
    );
    return {
      card: h("div", { class: "card scroll" }, h("h2", {}, title), grid, note),
      note,
      grid,
      heads,
    };
  };
  const now = table(
    "Firing and pending",
    ["State", "Rule", "Community", "Class", "Since", "When it began", "Now"],
    active,
    "No alert fires.",
    "stack firing",
  );
  const before = table(
    "Began and ended",
    ["State", "Rule", "Community", "Class", "Log time", "Why"],
    past,
    "Nothing has happened since the start.",
    "stack",
  );
  const counts = table(
    "Rules",
    ["Rule", "Firing", "Pending", "Inactive", "False alarms to expect", "Silent", "Why"],
    rules,
    "No rules are configured; see alerts in the configuration.",
    "rules stack",
  );
  const told = table(
    "Delivery",
    ["Target", "Queue", "Attempts", "Last error"],
    targets,
    "No targets; see notify in the configuration.",
    "figures",
  );
  const el = h(
    "section",
    { class: "alerts-page" },
    h("div", { class: "bar-tools" }, h("h1", {}, "Alerts")),
    notice,
    now.card,
    quiet.card,
    counts.card,
    before.card,
    told.card,
  );

  // lead goes to a community at the moment of a transition, with its class.
  function lead(x) {
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
  function fill(part, body, rows) {
    part.note.hidden = rows.length > 0;
    part.grid.hidden = rows.length === 0;
    body.replaceChildren(
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

  function draw(a) {
    const silent = a.rules.reduce((n, r) => n + r.suppressed + r.no_data, 0),
      all = a.rules.reduce((n, r) => n + r.inactive + r.pending + r.firing, 0);
    setText(
      now.note,
      "No alert fires." +
        (silent
          ? ` ${count(silent)} of ${count(all)} alerts cannot: their estimates are suppressed by ` +
            "a flag, or there is no data. The rules below say which."
          : ""),
    );
    fill(
      now,
      active,
      a.active.map((x) => [
        state(x.state),
        x.rule,
        lead(x),
        label(x.class),
        x.since ? time(x.since) : "",
        x.state === "firing" ? x.text : "",
        [x.now, info.silences && h("button", { type: "button", class: "plain",
          onclick: () => quiet.pick(x) }, "Silence …")],
      ]),
    );
    quiet.draw(a.silences ?? []);
    fill(
      before,
      past,
      a.transitions.map((x) => [
        state(x.state),
        x.rule,
        lead(x),
        label(x.class),
        x.time ? time(x.time) : "",
        x.text || x.reason,
      ]),
    );
    fill(
      counts,
      rules,
      a.rules.map((r) => [
        r.rule,
        count(r.firing),
        count(r.pending),
        count(r.inactive),
        often(r.expected_per_month),
        count(r.suppressed + r.no_data),
        whySilent(r),
      ]),
    );
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
