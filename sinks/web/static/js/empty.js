// Texts for empty lists, with advice.

import { h } from "./dom.js";
import { count } from "./format.js";

// noEvents reports whether the pipeline has read nothing at all.
export const noEvents = (status) =>
  Boolean(status?.pushed) &&
  status.graph.vertices === 0 &&
  status.graph.edges === 0 &&
  Object.values(status.events).every((n) => n === 0);

// emptyWords returns the text of an empty list of communities.
export function emptyWords(kept, state, info) {
  const s = state.status;
  if (kept.q)
    return [
      "No community has this in its name.",
      kept.flag ? " Or none of those has the flag chosen." : "",
    ];
  if (kept.flag) return ["No community has this flag now."];
  if (kept.method && state.total) return ["No community has an estimate by this method."];
  if (s?.progress) return [`Computing: ${s.progress}`];
  if (noEvents(s)) {
    const from = `--nats ${info.nats || "URL"}`;
    return [
      h("h2", {}, "No events yet"),
      h(
        "p",
        {},
        "Estimates appear after the first members, predictions and labels. Publish yours:",
      ),
      h(
        "pre",
        { class: "command" },
        `gqlstream publish ${from} --edges edges.csv \\\n` +
          "  --predictions predictions.csv --labels labels.csv --members members.csv",
      ),
      h(
        "p",
        {},
        "No data at hand? ",
        h("code", {}, "gqlstream demo"),
        " shows a simulated network. No communities? ",
        h("code", {}, "gqlstream communities"),
        " finds them by the edges.",
      ),
    ];
  }
  if (!s?.pushed) return ["No estimates yet. The pipeline is starting."];
  const events = Object.values(s.events).reduce((a, b) => a + b, 0);
  return [
    h(
      "p",
      {},
      "No estimates yet. They appear with the first emission of the pipeline; " +
        `it has applied ${count(events)} events.`,
    ),
    h(
      "p",
      {},
      "A community exists when it has members: from member events, from a rule in the " +
        "configuration, or by ",
      h("code", {}, "gqlstream communities"),
      ".",
    ),
  ];
}
