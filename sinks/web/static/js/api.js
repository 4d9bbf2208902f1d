// Talks to the server: requests, and the changes once a second.

// apiURL returns the address of a path of the API, below the address of the page: a proxy may serve
// both under a path of its own, such as /gql/.
export const apiURL = (path) => new URL(path.replace(/^\/+/, ""), document.baseURI);

export async function get(path, params, signal) {
  const url = apiURL(path);
  for (const [key, value] of Object.entries(params || {})) {
    for (const one of [value].flat())
      if (one !== "" && one !== undefined && one !== null) url.searchParams.append(key, one);
  }
  const reply = await fetch(url, { headers: { Accept: "application/json" }, signal });
  if (!reply.ok) {
    const body = await reply.json().catch(() => ({}));
    throw Object.assign(new Error(body.error || `the server answered ${reply.status}`), {
      status: reply.status,
    });
  }
  return reply.json();
}

const askEvery = 1000;
const answerMax = 10000; // a server that does not answer for so long is away
const waitMax = 8000;

// Live asks once a second for the status of the pipeline, and for new estimates of the communities
// in a view. onState gets "live", "connecting" or "paused"; handlers get hello with the first
// answer, then status and estimates. A hidden page asks nothing.
export class Live {
  constructor(onState) {
    this.onState = onState;
    document.addEventListener("visibilitychange", () => {
      if (this.paused && !document.hidden) this.#begin();
    });
  }

  // follow replaces the communities to follow; without names it asks for no estimates.
  follow(names, handlers) {
    Object.assign(this, { names, handlers, after: 0 });
    this.#begin();
  }

  #begin() {
    Object.assign(this, { answered: false, wait: askEvery, paused: false });
    this.onState("connecting");
    this.#ask();
  }

  async #ask() {
    clearTimeout(this.timer);
    const run = (this.run = {}); // an answer to an earlier question does not count
    if (document.hidden) {
      this.paused = true;
      this.onState("paused");
      return;
    }
    const ask = (path, params) => get(path, params, AbortSignal.timeout(answerMax));
    const news = await Promise.all([
      ask("/api/v1/status"),
      this.names.length
        ? ask("/api/v1/estimates", { community: this.names, after: this.after })
        : null,
    ]).catch(() => null);
    if (run !== this.run) return;
    if (news) this.#tell(...news);
    else {
      this.answered = false;
      this.onState("connecting");
    }
    // The pause doubles while there is no answer, with some jitter so that many pages do not come
    // back at once.
    this.wait = news ? askEvery : Math.min(2 * this.wait, waitMax);
    if (run === this.run)
      this.timer = setTimeout(
        () => this.#ask(),
        news ? askEvery : this.wait * (0.75 + 0.5 * Math.random()),
      );
  }

  #tell(status, changed) {
    const anew = !this.answered || status.instance !== this.instance;
    if (status.instance !== this.instance) this.after = 0;
    Object.assign(this, { answered: true, instance: status.instance });
    this.onState("live");
    if (anew) this.handlers.hello?.(status);
    if (changed) this.after = changed.position;
    if (changed?.estimates.length) this.handlers.estimates?.(changed.estimates);
    this.handlers.status?.(status);
  }
}
