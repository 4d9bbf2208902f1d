// Talks to the server: requests, and one event stream that mends itself.

export async function get(path, params, signal) {
  const url = new URL(path, location.origin);
  for (const [key, value] of Object.entries(params || {})) {
    if (value !== "" && value !== undefined && value !== null) url.searchParams.set(key, value);
  }
  const reply = await fetch(url, { headers: { Accept: "application/json" }, signal });
  if (!reply.ok) {
    const body = await reply.json().catch(() => ({}));
    throw Object.assign(new Error(body.error || `the server answered ${reply.status}`), { status: reply.status });
  }
  return reply.json();
}

const waitMin = 500;
const waitMax = 8000;
const hiddenMax = 5000; // a page out of sight keeps its stream this long

// Live holds at most one EventSource. onState gets "live", "connecting" or
// "paused"; handlers gets hello, estimates and status. Browsers open six connections to a
// server, whatever the number of tabs, and keep pages that were left: a stream that nobody
// looks at would leave none for the others, so it is closed.
export class Live {
  constructor(onState) {
    this.onState = onState;
    this.wait = waitMin;
    document.addEventListener("visibilitychange", () => this.#visibility());
    addEventListener("pagehide", () => this.#pause());
    addEventListener("pageshow", () => this.#visibility());
  }

  // follow replaces the stream: communities to name (none: no filter), events.
  follow(communities, events, handlers) {
    const url = new URL("/api/v1/stream", location.origin);
    for (const name of communities) url.searchParams.append("community", name);
    url.searchParams.set("events", events.join(","));
    this.url = url;
    this.handlers = handlers;
    this.wait = waitMin;
    this.paused = false;
    this.#open();
    this.#visibility();
  }

  #open() {
    this.#shut();
    this.onState("connecting");
    const source = new EventSource(this.url);
    this.source = source;
    const on = (name, then) => source.addEventListener(name, (event) => {
      if (source !== this.source) return;
      then(JSON.parse(event.data));
    });
    on("hello", (m) => {
      this.wait = waitMin;
      this.onState("live");
      this.handlers.hello?.(m);
    });
    on("estimates", (m) => this.handlers.estimates?.(m));
    on("status", (m) => this.handlers.status?.(m));
    on("reconnect", () => this.#later());
    source.onerror = () => { if (source === this.source) this.#later(); };
  }

  // later tries again after a pause that doubles, with some jitter so that many
  // pages do not come back at once.
  #later() {
    this.#shut();
    this.onState("connecting");
    this.timer = setTimeout(() => this.#open(), this.wait * (0.75 + 0.5 * Math.random()));
    this.wait = Math.min(2 * this.wait, waitMax);
  }

  #shut() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  #pause() {
    if (!this.url) return;
    this.#shut();
    this.paused = true;
    this.onState("paused");
  }

  #visibility() {
    clearTimeout(this.hidden);
    if (document.hidden) {
      this.hidden = setTimeout(() => this.#pause(), hiddenMax);
    } else if (this.paused) {
      this.paused = false;
      this.#open();
    }
  }
}
