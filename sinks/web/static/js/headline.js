// The line under the head of every page: how far the estimates can be trusted to be current.

import { setAttr, setText } from "./dom.js";
import { moment, zone } from "./time.js";

const line = document.getElementById("live"), sentence = document.getElementById("sentence");
const clock = document.getElementById("clock"), level = document.getElementById("level");

const offline = {
  connecting: "No answer from the server. The figures below are the last ones known; trying again.",
  paused: "Paused, because this page is hidden.",
};
const spoken = {
  live: "is live", busy: "is not live yet", warning: "is live, with a warning", bad: "stands still",
};

// connection shows the state of the connection: "live", "connecting" or "paused".
export function connection(state) {
  line.dataset.state = state;
  if (state === "live") return;
  setText(sentence, offline[state]);
  line.dataset.level = state === "paused" ? "busy" : "bad";
  setText(clock, "");
}

// headline shows the state of the server. The level alone is read aloud, when it changes:
// the sentence has figures that move every second.
export function headline(status) {
  line.dataset.level = status.headline.level;
  setText(sentence, status.headline.text);
  setAttr(line, "title", status.headline.text);
  setText(clock, status.log_time ? `Log time ${moment(status.log_time)} (${zone()})` : "");
  const { level: now } = status.headline;
  setText(level, `The pipeline ${spoken[now] ?? `is ${now}`}.`);
}
