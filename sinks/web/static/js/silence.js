// Silences and acknowledgements: a form for them, and those in force.

import { apiURL } from "./api.js";
import { h, setText } from "./dom.js";
import { classNamed, named, time } from "./format.js";

const lengths = [["1h", "1 hour"], ["8h", "8 hours"], ["24h", "1 day"], ["168h", "1 week"]];

// post sends a decision, or throws the server's message.
async function post(decision) {
  const reply = await fetch(apiURL("/api/v1/alerts/silence"), { method: "POST",
    headers: { "Content-Type": "application/json" }, body: JSON.stringify(decision) });
  const body = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Error(body.error || `the server answered ${reply.status}`);
}

// field is an input with its name before it.
const field = (name, input) => h("label", { class: "pick" }, h("span", {}, name), input);

function whose(s) {
  const about = (pattern, all, shown) => (pattern === "*" ? all : shown(pattern));
  return `${about(s.rule, "all rules", (x) => x)}, ` +
    `${about(s.community, "all communities", named)}, ${about(s.class, "all classes", classNamed)}`;
}

// silences returns the card, pick, which fills the form in for an alert, and draw, which lists
// the decisions in force.
export function silences(info) {
  const text = (name, attrs) => h("input",
    { type: "text", "aria-label": name, placeholder: name, ...attrs });
  const rule = text("Rule", { value: "*", required: true });
  const who = text("Community", { value: "*", required: true });
  const what = text("Class", { value: "*", required: true });
  const by = text("Your name", { required: true }), why = text("Why", {});
  const length = h("select", { "aria-label": "For" },
    lengths.map(([value, shown]) => h("option", { value }, shown)));
  const state = h("p", { class: "quiet", role: "status" });
  const list = h("ul", { class: "silences" });

  async function decide(decision, done) {
    try {
      await post(decision);
      setText(state, done);
    } catch (err) {
      setText(state, `Not done: ${err.message}`);
    }
  }
  function submit(event) {
    event.preventDefault();
    const acknowledge = event.submitter?.value === "acknowledge";
    decide({ rule: rule.value, community: who.value, class: what.value, for: length.value,
      by: by.value, why: why.value, acknowledge },
    acknowledge ? "Acknowledged. The alert keeps firing." : "Silenced. It shows in a moment.");
  }
  const form = h("form", { class: "silence-form", onsubmit: submit },
    field("Rule", rule), field("Community", who), field("Class", what), field("For", length),
    field("Your name", by), field("Why", why),
    h("button", { type: "submit", class: "plain", value: "silence" }, "Silence"),
    h("button", { type: "submit", class: "plain", value: "acknowledge" }, "Acknowledge"));
  const card = h("div", { class: "card", hidden: !info.silences },
    h("h2", {}, "Silence or acknowledge"),
    h("p", { class: "quiet" }, "* stands for all. A silence ends firing alerts and holds new " +
      "ones back; an acknowledgement says who sees to them."), form, state, list);
  return {
    card,
    pick(x) {
      [rule.value, who.value, what.value] = [x.rule, x.community, x.class];
      by.focus();
    },
    draw(inForce) {
      list.replaceChildren(...inForce.map((s) => h("li", {},
        `${s.acknowledge ? "Acknowledged" : "Silenced"} until ${time(s.until)} by ${s.by}: ` +
          `${whose(s)}${s.why ? ` (${s.why})` : ""} `,
        h("button", { type: "button", class: "plain", onclick: () => decide(
          { rule: s.rule, community: s.community, class: s.class, for: "0s", by: s.by,
            acknowledge: s.acknowledge }, "Ended.") }, "End"))));
    },
  };
}
