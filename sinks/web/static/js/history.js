// The data of the page of a community: its series by method, the compared series, and the shown
// part of time.

import { get } from "./api.js";
import { iso } from "./address.js";
import { write } from "./compare.js";
import { Series } from "./series.js";

const pointsWanted = 1500;
const missedMax = 100; // records that came while nothing was asked
const momentPoints = 30; // records before a moment that say how wide a part to show around it
const plainMethod = "pcc", auditMethod = "audit";

export const path = (line) => `/api/v1/communities/${encodeURIComponent(line.name)}`;

export class History {
  constructor(name, state) {
    Object.assign(this, { name, state, series: new Map(), own: [], failed: new Map(), main: "" });
  }

  of(line) { return this.series.get(write(line)); }
  get current() { return this.of({ name: this.name, method: this.state.method }); }
  get plain() { return this.state.method === plainMethod ? null : this.ofMethod(plainMethod); }
  get audit() { return this.state.method === auditMethod ? null : this.ofMethod(auditMethod); }
  ofMethod(method) { return this.of({ name: this.name, method }); }

  get lines() {
    return [{ name: this.name, method: this.state.method }, ...this.state.others]
      .map((line) => ({ ...line, series: this.of(line) }));
  }

  accept(estimates) {
    for (const e of estimates) {
      const line = write({ name: e.community, method: e.method });
      if (!this.series.has(line)) this.series.set(line, new Series());
      this.series.get(line).add(e);
      if (e.community === this.name && !this.own.includes(e.method)) this.own.push(e.method);
    }
  }

  // span returns the time parameters of a request for history.
  span(latest) {
    const { from, to, range } = this.state;
    const text = (x) => (x === null ? "" : iso(x));
    if (from !== null || to !== null) return { from: text(from), to: text(to) };
    const end = Date.parse(latest?.time) / 1000;
    return { from: range && Number.isFinite(end) ? iso(end - range) : "", to: "" };
  }

  async read(line, latest) {
    const asked = { method: line.method, points: pointsWanted, ...this.span(latest) };
    const got = await get(`${path(line)}/history`, asked);
    this.series.set(write(line), Series.of(got, this.of(line)));
  }

  // around chooses the part of time about the position that the address names.
  async around(estimates) {
    const { state } = this, line = { name: this.name, method: state.method };
    if (state.at === null || state.from !== null || state.to !== null) return;
    await this.read(line, null);
    const list = this.of(line)?.points || [];
    const found = list.findLastIndex((p) => p.position <= state.at);
    if (found < 0 || !Number.isFinite(list[found].at)) return;
    const { at } = list[found];
    const width = Math.max(60, at - list[Math.max(0, found - momentPoints)].at);
    const end = Date.parse(estimates.find((e) => e.method === state.method)?.time) / 1000;
    Object.assign(state, { from: at - width, to: Math.min(at + width, Math.max(end, at + 1)) });
  }

  // newest reads the newest record and the one before it, which may have come since the last ask:
  // the error of a change is that between these two.
  async newest() {
    const asked = { method: this.state.method, limit: 2 };
    const { estimates } = await get(`${path(this)}/estimates`, asked);
    this.before = estimates.length > 1 ? estimates[0] : null;
    this.accept(estimates.slice(-1));
  }

  // missed reads the records that came while nothing was asked.
  async missed() {
    const last = this.current?.last?.position;
    const asked = { method: this.state.method, limit: missedMax };
    const answer = await get(`${path(this)}/estimates`, asked).catch(() => ({ estimates: [] }));
    this.accept(answer.estimates.filter((e) => e.position > last));
  }

  // load reads all that the page shows. It returns the answer about the community.
  async load() {
    const { state } = this, about = await get(path(this));
    this.main = about.main;
    state.method ||= about.main;
    for (const line of state.others) line.method ||= state.method;
    this.accept(about.estimates);
    const latest = about.estimates.find((e) => e.method === state.method);
    if (!latest) {
      const known = about.estimates.map((e) => e.method).join(", ");
      const text = `No estimate by the method ${state.method}; the methods are ${known}.`;
      throw Object.assign(new Error(), { status: 404, text });
    }
    await this.around(about.estimates);
    state.at = null;
    const beside = [plainMethod, auditMethod].filter((m) =>
      m !== state.method && about.estimates.some((e) => e.method === m));
    await Promise.all([state.method, ...beside].map((method) =>
      this.read({ name: this.name, method }, latest)));
    await this.newest();
    await Promise.all(state.others.map((line) => this.read(line, latest).then(
      () => this.failed.delete(write(line)), (err) => this.failed.set(write(line), err.message))));
    return { about, latest };
  }
}
