// Keeps one community's series by method, merged by position.

const pointsMax = 4000;
const gapLeast = 5; // seconds
const gapQuiet = 2.5; // times the quiet of a community that is published again
const gapTimes = 8; // a gap is so many times the usual step between its neighbours
const gapNear = 5; // steps on each side
const gapPart = 100; // and at least this part of what is shown
const gapPeriods = 1.75; // of roll-ups: one period is empty,
const gapPeriodTimes = 2.5; // and the step is so many times the usual one
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
    for (const r of answer.rollups) {
      const e = { ...r, prevalence: r.mean, community: answer.community, method: answer.method, resolution: answer.resolution };
      series.points.push({ position: r.position, at: (Date.parse(r.time) + Date.parse(r.until)) / 2000, e, period });
    }
    const end = series.last?.position ?? -1;
    for (const p of live?.points || []) if (!p.period && p.position >= end) series.add(p.e);
    return series;
  }

  get last() { return this.points[this.points.length - 1]; }

  // timed reports whether the points can be drawn over time, else over position.
  get timed() { return this.points.length > 0 && this.points.every((p) => Number.isFinite(p.at)); }

  // between returns the points with a time in [from, to]; null is unbounded.
  between(from, to) {
    if (!this.timed) return this.points;
    return this.points.filter((p) => (from === null || p.at >= from) && (to === null || p.at <= to));
  }
}

// gaps returns, for each point, whether there is no data between it and the one before.
// Series are thinner where they are older, so a step is compared with those before it
// and with those after it, and must be longer than both. A community that hardly moves is
// published again after some quiet seconds, so no step of a few times that is a gap.
export function gaps(points, span, quiet = 0) {
  const steps = points.map((p, i) => (i ? p.at - points[i - 1].at : 0));
  const least = Math.max(gapLeast, gapQuiet * quiet, span / gapPart);
  const usual = (list) => (list.length < 2 ? 0 : list.sort((a, b) => a - b)[list.length >> 1]);
  return steps.map((step, i) => {
    const period = i && Math.min(points[i].period || 0, points[i - 1].period || 0);
    if (i === 0 || !(step > (period ? gapPeriods * period : least))) return false;
    const around = Math.max(usual(steps.slice(Math.max(1, i - gapNear), i)), usual(steps.slice(i + 1, i + 1 + gapNear)));
    return around > 0 && step > (period ? gapPeriodTimes : gapTimes) * around;
  });
}

// table returns columns for a chart: where the points are, and what each field says
// there. Where there is a gap, an empty row breaks the lines.
export function table(points, timed, span, quiet, fields) {
  const breaks = timed ? gaps(points, span, quiet) : [];
  const columns = [[], ...fields.map(() => [])];
  points.forEach((p, i) => {
    if (breaks[i]) {
      columns[0].push((points[i - 1].at + p.at) / 2);
      for (const column of columns.slice(1)) column.push(null);
    }
    columns[0].push(timed ? p.at : p.position);
    fields.forEach((field, f) => columns[f + 1].push(field(p.e) ?? null));
  });
  return columns;
}

// alone returns the points that no line leads to or from.
export function alone(points, timed, span, quiet) {
  const breaks = timed ? gaps(points, span, quiet) : [];
  const shut = (i) => i <= 0 || i >= points.length || breaks[i];
  return points.filter((_, i) => shut(i) && shut(i + 1));
}

// nearest returns the index of the point nearest to a place on the axis.
export function nearest(points, timed, x) {
  const at = (p) => (timed ? p.at : p.position);
  let best = 0;
  points.forEach((p, i) => { if (Math.abs(at(p) - x) < Math.abs(at(points[best]) - x)) best = i; });
  return best;
}

// switches returns the points at which the model version changed.
export function switches(points) {
  return points.filter((p, i) => i > 0 && !p.period && !points[i - 1].period && p.e.model_version !== points[i - 1].e.model_version);
}

// rests reports whether the estimate of a point rests on a label: the first of a log may not, and whatever
// comes after it has not moved.
export const rests = (p) => !p.e.flags?.includes("no-labels");

// largestChange returns the two points of the largest change of a class that took a
// short part of the series, between points that rest on labels if two do; until, if given, is the index at which it must end. Of
// changes almost as large the one that took the fewest points is meant.
export function largestChange(points, k, until = null) {
  const reach = Math.max(1, Math.floor(points.length / 12));
  const first = Math.max(0, points.findIndex(rests));
  let best = null;
  for (let j = until ?? Math.min(first + 1, points.length - 1); j <= (until ?? points.length - 1); j++) {
    for (let i = j - 1; i >= Math.max(Math.min(first, j - 1), j - reach); i--) {
      const size = Math.abs(points[j].e.prevalence[k] - points[i].e.prevalence[k]);
      if (!best || size > best.size * (j - i > best.j - best.i ? 1.1 : 1) + 1e-9) best = { i, j, size };
    }
  }
  return best && [best.i, best.j];
}
