// Keeps one community's series by method, merged by position.

const pointsMax = 4000;

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

  get last() { return this.points[this.points.length - 1]; }

  // timed reports whether the points can be drawn over time, else over position.
  get timed() { return this.points.length > 0 && this.points.every((p) => Number.isFinite(p.at)); }

  // since returns the points of the last seconds, all for zero.
  since(seconds) {
    if (!seconds || !this.timed) return this.points;
    const from = this.last.at - seconds;
    return this.points.filter((p) => p.at >= from);
  }
}

// align returns the plain count for each of the points: the newest at or before.
export function align(points, plain) {
  let i = 0;
  return points.map((p) => {
    while (i + 1 < plain.length && plain[i + 1].position <= p.position) i++;
    return plain.length && plain[i].position <= p.position ? plain[i].e : null;
  });
}

// switches returns the points at which the model version changed.
export function switches(points) {
  return points.filter((p, i) => i > 0 && p.e.model_version !== points[i - 1].e.model_version);
}
