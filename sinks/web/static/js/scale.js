// Scales of a picture: from values to places, and where ticks stand.

// linear returns a function from [from, to] to [start, end].
export function linear(from, to, start, end) {
  const width = to - from || 1;
  return (x) => start + (end - start) * (x - from) / width;
}

// shareRange returns a range of shares around the shown ones, with a margin.
export function shareRange(values) {
  const known = values.filter(Number.isFinite);
  if (known.length === 0) return [0, 1];
  const low = Math.min(...known), high = Math.max(...known);
  const room = Math.max(0.01, 0.08 * (high - low));
  return [Math.max(0, low - room), Math.min(1, high + room)];
}

// shareTicks returns about count round shares in a range.
export function shareTicks(low, high, count) {
  const step = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5]
    .find((s) => (high - low) / s <= count) ?? 0.5;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9; i++) ticks.push(i * step);
  return ticks;
}

// Step paths: a value holds until the next one. Points are [x, y]; a y that is no number breaks
// the line.

// stepPath returns the path of one line.
export function stepPath(points, end) {
  let path = "", open = false;
  points.forEach(([x, y], i) => {
    const next = points[i + 1]?.[0] ?? Math.max(end, x);
    if (!Number.isFinite(y)) { open = false; return; }
    path += open ? `V${y.toFixed(1)}` : `M${x.toFixed(1)} ${y.toFixed(1)}`;
    path += `H${next.toFixed(1)}`;
    open = true;
  });
  return path;
}

// bandPath returns the path of the area between two lines; points are [x, low, high].
export function bandPath(points, end) {
  return points.map(([x, low, high], i) => {
    const next = points[i + 1]?.[0] ?? Math.max(end, x);
    if (!Number.isFinite(low) || !Number.isFinite(high)) return "";
    return `M${x.toFixed(1)} ${low.toFixed(1)}H${next.toFixed(1)}V${high.toFixed(1)}` +
      `H${x.toFixed(1)}Z`;
  }).join("");
}
