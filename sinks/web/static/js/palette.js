// Which colour a class has. There are twenty, and no two classes that are seen
// together share one: with more classes the largest have theirs, and the others are
// shown together as "other".

import { css } from "./dom.js";

const tints = 20;
const foldBelow = 0.01; // of a share, where there are more classes than fit the eye
const foldFrom = 7;

export const colour = (slot) => (slot < 0 ? "kother" : `k${slot}`); // CSS class
export const colourValue = (slot) => css(slot < 0 ? "--other" : `--k${slot}`);

// slots returns the colour of each class. shares are those of some communities, by
// which the largest classes are chosen if there are too many.
export function slots(count, shares) {
  const all = [...Array(count).keys()];
  if (count <= tints) return all;
  const mean = all.map((k) => shares.reduce((sum, list) => sum + (list?.[k] ?? 0), 0));
  const largest = all.toSorted((a, b) => mean[b] - mean[a]).slice(0, tints);
  const out = all.map(() => -1);
  largest.sort((a, b) => a - b).forEach((k, i) => { out[k] = i; });
  return out;
}

// distinct gives classes that are drawn as lines a colour each, also classes without one of
// their own.
export function distinct(own, classes) {
  const taken = new Set(classes.map((k) => own[k]).filter((slot) => slot >= 0));
  const free = [...Array(tints).keys()].filter((slot) => !taken.has(slot));
  return new Map(classes.map((k) => [k, own[k] >= 0 ? own[k] : free.shift() ?? -1]));
}

// folded reports whether a class is part of "other" in a bar of shares.
export const folded = (own, share, k) =>
  own[k] < 0 || (own.length >= foldFrom && share < foldBelow);
