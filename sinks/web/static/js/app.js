// The page: reads the address, shows one of four views, keeps the stream.

import { get, Live } from "./api.js";
import { h, setAttr, setText } from "./dom.js";
import { communities } from "./communities.js";
import { detail } from "./detail.js";
import { pipeline } from "./pipeline.js";
import { alertsPage } from "./alerts.js";
import { label } from "./format.js";

const main = document.getElementById("main");
const pill = document.getElementById("live");
const live = new Live((state) => {
  pill.dataset.state = state;
  setText(pill, { live: "live", connecting: "reconnecting", paused: "paused" }[state]);
  setAttr(pill, "title", pill.textContent);
});

let info = null;
let view = null; // { el, stream, unmount, refresh, estimates, status }

// address reads the hash: "#/", "#/pipeline" or "#/c/NAME".
function address() {
  const path = location.hash.slice(1) || "/";
  if (path === "/pipeline") return { page: "pipeline" };
  if (path === "/alerts") return { page: "alerts" };
  if (path.startsWith("/c/")) {
    try { return { page: "detail", name: decodeURIComponent(path.slice(3)) }; } catch { /* not ours */ }
  }
  return { page: "communities" };
}

function show() {
  const at = address();
  view?.unmount?.();
  if (at.page === "pipeline") view = pipeline(info);
  else if (at.page === "alerts") view = alertsPage();
  else if (at.page === "detail") view = detail(info, at.name);
  else view = communities(info);
  main.replaceChildren(view.el);
  view.mounted?.();
  document.title = `${view.title} · gqlstream`;
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.dataset.page === at.page || (at.page === "detail" && link.dataset.page === "communities");
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const current = view;
  live.follow(current.stream.communities, current.stream.events, {
    hello: (m) => hello(m, current),
    estimates: (m) => current.estimates?.(m),
    status: (m) => current.status?.(m),
  });
}

// hello notices a server that was started anew: its classes may be others.
async function hello(message, current) {
  if (message.instance !== info.instance) {
    try { await load(); } catch { return; }
    if (current === view) show();
    return;
  }
  if (current === view) current.refresh?.();
}

async function load() {
  info = await get("/api/v1/info");
  info.labels = info.classes.map(label);
  setText(document.getElementById("pipeline"), info.pipeline);
}

const modes = { auto: ["light", "◐", "as the system"], light: ["dark", "☀", "light"], dark: ["auto", "☾", "dark"] };

function themeButton() {
  const button = document.getElementById("theme");
  const draw = () => {
    const [, sign, name] = modes[window.gqlTheme.mode] || modes.auto;
    setText(button, sign);
    button.title = `Theme: ${name}`;
    button.setAttribute("aria-label", button.title);
  };
  button.addEventListener("click", () => { window.gqlTheme.set((modes[window.gqlTheme.mode] || modes.auto)[0]); draw(); });
  draw();
}

async function start() {
  themeButton();
  for (let wait = 500; ; wait = Math.min(2 * wait, 8000)) {
    try { await load(); break; } catch (err) {
      main.replaceChildren(h("p", { class: "note" }, `No answer from the server yet: ${err.message}. Trying again.`));
      await new Promise((done) => setTimeout(done, wait));
    }
  }
  addEventListener("hashchange", () => { show(); main.focus({ preventScroll: true }); });
  addEventListener("themechange", () => view?.theme?.());
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
  show();
}

start();
