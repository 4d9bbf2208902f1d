// The page: reads the address, shows one of its views, asks for changes.

import { get, Live } from "./api.js";
import { h, setText } from "./dom.js";
import { read } from "./address.js";
import { communities, listAddress } from "./communities.js";
import { detail } from "./detail.js";
import { pipeline } from "./pipeline.js";
import { remember } from "./rates.js";
import { alertsPage } from "./alerts.js";
import { charts } from "./charts.js";
import { classifier } from "./classifier.js";
import { connection, headline } from "./headline.js";
import { slots } from "./palette.js";
import { classNamed, namer } from "./format.js";

const main = document.getElementById("main");
const live = new Live(connection);

let info = null;
let view = null; // { el, names, unmount, refresh, estimates, status }

function unknown(at) {
  return {
    title: "Nothing here",
    names: [],
    el: h("section", { class: "unknown" }, h("h1", {}, "No such page"),
      h("p", {}, `Nothing is at ${at.path}. The address may be mistyped, or of another version.`),
      h("p", {}, h("a", { href: "#/" }, "All communities"))),
  };
}

const views = {
  communities, detail, pipeline, charts, classifier, alerts: alertsPage,
  unknown: (_, at) => unknown(at),
};

function show() {
  const at = read();
  view?.unmount?.();
  const again = () => { if (view === current) follow(current); };
  const current = view = views[at.page](info, at, again);
  main.replaceChildren(view.el);
  view.mounted?.();
  document.title = `${view.title} · gqlstream`;
  for (const link of document.querySelectorAll("nav a")) {
    const { page } = link.dataset;
    if (page === at.page || (at.page === "detail" && page === "communities")) {
      link.setAttribute("aria-current", "page");
    } else link.removeAttribute("aria-current");
    if (page === "communities") link.href = listAddress();
  }
  if (!current.follows) follow(current);
}

// follow asks for the estimates of a view.
function follow(current) {
  current.follows = true;
  live.follow(current.names, {
    hello: (status) => hello(status, current),
    estimates: (list) => current.estimates?.(list),
    status: (status) => { headline(status); remember(status); current.status?.(status); },
  });
}

// hello notices a restarted server: its classes may differ.
async function hello(status, current) {
  if (status.instance !== info.instance) {
    try { await load(); } catch { return; }
    if (current === view) show();
    return;
  }
  if (current === view) current.refresh?.();
}

async function load() {
  info = await get("/api/v1/info");
  namer(info);
  info.labels = info.classes.map(classNamed);
  info.slots = slots(info.classes.length, []);
  if (info.slots.includes(-1)) { // too many classes: those of the largest communities have a colour
    const asked = { sort: "members", order: "desc", limit: 100 };
    const list = await get("/api/v1/communities", asked);
    const shares = list.communities.map((row) => row.estimate.prevalence);
    info.slots = slots(info.classes.length, shares);
  }
  setText(document.getElementById("pipeline"), info.pipeline);
}

const modes = {
  auto: ["light", "◐", "as the system"], light: ["dark", "☀", "light"], dark: ["auto", "☾", "dark"],
};

function themeButton() {
  const button = document.getElementById("theme");
  const mode = () => modes[window.gqlTheme.mode] || modes.auto;
  const draw = () => {
    const [, sign, name] = mode();
    setText(button, sign);
    button.title = `Theme: ${name}`;
    button.setAttribute("aria-label", button.title);
  };
  button.addEventListener("click", () => { window.gqlTheme.set(mode()[0]); draw(); });
  draw();
}

async function start() {
  themeButton();
  for (let wait = 500; ; wait = Math.min(2 * wait, 8000)) {
    try { await load(); break; } catch (err) {
      main.replaceChildren(h("p", { class: "note" },
        `No answer from the server yet: ${err.message}. Trying again.`));
      await new Promise((done) => setTimeout(done, wait));
    }
  }
  addEventListener("hashchange", () => { show(); main.focus({ preventScroll: true }); });
  addEventListener("themechange", () => view?.theme?.());
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  show();
}

start();
