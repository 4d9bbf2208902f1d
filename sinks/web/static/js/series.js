// Keeps one community's series by method, merged by position. A value is in force until the next
// one: where nothing was published, nothing moved, and a pipeline that was down catches up. So only
// a community that was not published, for the privacy floor, leaves a gap.

const pointsMax = 4000;
const periods = { minute: 60, hour: 3600, day: 86400 };

export class Series {
  constructor() { this.points = []; }

  // add puts an estimate in its place; a repeated position replaces.
  add(e) {
    const at = e.time ? Date.parse(e.time) / 1000 : NaN;
    const p = { position: e.position, at, e };
    const list = this.points;
    let i = list.length;
    while (i > 0 && list[i - 1].position > p.position) i--;
    if (i > 0 && list[i - 1].position === p.position) list[i - 1] = p;
    else list.splice(i, 0, p);
    if (list.length > pointsMax) list.splice(0, list.length - pointsMax);
  }

  // of returns the series that the server's history describes, and of another one the
  // records that came since.
  static of(answer, live) {
    const series = new Series(), period = periods[answer.resolution];
    for (const e of answer.estimates) series.add(e);
    answer.rollups.forEach((r, i) => series.points.push(...pointsOf(r, answer, period,
      Date.parse(answer.rollups[i + 1]?.time) / 1000)));
    const end = series.last?.position ?? -1;
    for (const p of live?.points || []) if (!p.period && p.position >= end) series.add(p.e);
    return series;
  }

  get last() { return this.points[this.points.length - 1]; }

  // timed reports whether the points can be drawn over time, else over position.
  get timed() { return this.points.length > 0 && this.points.every((p) => Number.isFinite(p.at)); }

  // between returns the points with a time in [from, to], and the one that is in force at from;
  // null is unbounded.
  between(from, to) {
    if (!this.timed) return this.points;
    const first = from === null ? 0 : Math.max(0, this.points.findLastIndex((p) => p.at <= from));
    return this.points.slice(first).filter((p) => to === null || p.at <= to);
  }
}

// pointsOf returns the points of a roll-up: the mean from its beginning on, and after its period,
// if the next one does not follow at once, the last value.
function pointsOf(r, answer, period, next) {
  const begin = Date.parse(r.time) / 1000, { community, method, resolution } = answer;
  const e = { ...r, prevalence: r.mean, community, method, resolution };
  const points = [{ position: r.position, at: begin, e, period }];
  const held = r.count > 1 && !(next <= begin + period);
  if (held) {
    points.push({ position: r.position, at: Math.max(begin, Date.parse(r.until) / 1000), period,
      e: { ...e, prevalence: r.last } });
  }
  return points;
}

// table returns columns for a chart: the x values of the points, and a column for each field. A
// last row holds the newest values up to a time, if one is given.
export function table(points, timed, until, fields) {
  const columns = [[], ...fields.map(() => [])];
  for (const p of points) {
    columns[0].push(timed ? p.at : p.position);
    fields.forEach((field, f) => columns[f + 1].push(field(p.e) ?? null));
  }
  const last = points.at(-1);
  if (timed && last && until > last.at) {
    columns[0].push(until);
    fields.forEach((field, f) => columns[f + 1].push(field(last.e) ?? null));
  }
  return columns;
}

// nearest returns the index of the point nearest to a place on the axis.
export function nearest(points, timed, x) {
  const at = (p) => (timed ? p.at : p.position);
  let best = 0;
  points.forEach((p, i) => { if (Math.abs(at(p) - x) < Math.abs(at(points[best]) - x)) best = i; });
  return best;
}

// inForce returns the index of the point that is in force at a place on the axis.
export function inForce(points, timed, x) {
  return Math.max(0, points.findLastIndex((p) => (timed ? p.at : p.position) <= x));
}

// switches returns the points where the model version changed.
export function switches(points) {
  return points.filter((p, i) => i > 0 && p.e.model_version && points[i - 1].e.model_version &&
    p.e.model_version !== points[i - 1].e.model_version);
}

// revisions returns the points where a revision, rather than news, moved a class by a visible
// amount, among records with the fields moved and revised.
export function revisions(points, k, least = 0.01) {
  return points.filter((p) => Math.abs(p.e.revised?.[k] ?? 0) >= least);
}

// revised returns the points shifted by the revisions after each of them: the published line is
// the knowledge of its time, this one is today's. Null where records do not divide changes.
export function revised(points) {
  if (!points.some((p) => p.e.revised?.length)) return null;
  const k = points.at(-1).e.prevalence?.length ?? 0, later = new Array(k).fill(0), out = [];
  for (const p of points.toReversed()) {
    const shifted = p.e.prevalence?.map((x, i) => Math.min(1, Math.max(0, x + later[i])));
    out.push({ ...p, e: { ...p.e, prevalence: shifted, low: [], high: [] } });
    p.e.revised?.forEach((x, i) => { later[i] += x; });
  }
  return out.reverse();
}

// rests reports whether the estimate of a point rests on a label: the first of a log may not, and
// the record after it has not moved.
export const rests = (p) => !p.e.flags?.includes("no-labels");

// change returns by how much a class moved between two points: the moved parts of the records in
// between where they have them, else the difference.
export function change(points, i, j, k) {
  const between = points.slice(i + 1, j + 1);
  if (between.length && between.every((p) => p.e.moved?.length)) {
    return between.reduce((sum, p) => sum + p.e.moved[k], 0);
  }
  return points[j].e.prevalence[k] - points[i].e.prevalence[k];
}

// settled returns the index of the first point after the warm-up: from there on the estimate rests
// on labels, and its interval is at most twice as wide as at the end. The part of a width for being
// behind does not count if the point has it: it is large while opinions move.
export function settled(points, k) {
  const width = ({ e }) => {
    const behind = (e.se_lag?.[k] ?? 0) / (e.se?.[k] || 1);
    const whole = (e.high?.[k] ?? 0) - (e.low?.[k] ?? 0);
    return whole * Math.sqrt(Math.max(0, 1 - behind * behind));
  };
  const most = 2 * width(points.at(-1));
  return Math.max(0, points.findIndex((p) => rests(p) && width(p) <= most));
}

// largestChange returns the two points of the largest move of a class that took a short part of
// the series, after the warm-up; until, if given, is the index of its end. Of changes
// almost as large the one that took the fewest points is meant.
export function largestChange(points, k, until = null) {
  const reach = Math.max(1, Math.floor(points.length / 12));
  const first = settled(points, k);
  const ends = until ?? points.length - 1;
  let best = null;
  for (let j = until ?? Math.min(first + 1, ends); j <= ends; j++) {
    for (let i = j - 1; i >= Math.max(Math.min(first, j - 1), j - reach); i--) {
      const size = Math.abs(change(points, i, j, k));
      const factor = best && j - i > best.j - best.i ? 1.1 : 1;
      if (!best || size > best.size * factor + 1e-9) best = { i, j, size };
    }
  }
  return best && [best.i, best.j];
}
