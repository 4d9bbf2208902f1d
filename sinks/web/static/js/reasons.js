// Causes of a change in a reader's words, and odd patterns among them.

import { count, percent } from "./format.js";

export const reasons = {
  joined: { title: "Members joined", meaning: "new members" },
  left: { title: "Members left", meaning: "former members" },
  predictions: { title: "New predictions", meaning: "the classifier's reading of new words" },
  model: { title: "New classifier", meaning: "another version of the classifier took over" },
  age: { title: "Older predictions and labels",
    meaning: "what people said or were labelled long ago counts less" },
  labels: { title: "New labels", meaning: "new labels of people" },
  edges: { title: "New or ended edges", meaning: "connections between people" },
  attributes: { title: "Attributes changed",
    meaning: "what is known of people besides, such as their language" },
  coefficients: { title: "Correction learned again",
    meaning: "a new fit of the classifier's errors on the labels: no news" },
  gamma: { title: "Who the members are",
    meaning: "another judgement of how far people are members because of their opinion: no news" },
  few: { title: "A few changes",
    meaning: "changes of too few people to show separately" },
};

const manyJoined = 20;
const waveShare = 0.5; // of the members of before
const newShare = 0.8; // of joined members
const oneSided = 0.9;

// oddities returns sentences about new members that an editor should look at: a wave of them, such
// as were not in the graph before, and such as are all predicted alike.
export function oddities(x, info) {
  const out = [], joined = x.causes.find((c) => c.kind === "joined");
  if (joined && joined.changes >= manyJoined) {
    const n = joined.changes, before = x.from.estimate.members;
    const fresh = joined.details.find((d) => d.what === "not in the graph before")?.count ?? 0;
    if (before > 0 && n >= waveShare * before) {
      out.push(`${count(n)} members joined a community of ${count(before)}: a wave.`);
    }
    if (fresh >= newShare * n) {
      out.push(`${percent(fresh / n)} of the members who joined were not in the graph before. ` +
        "Check that they are real people.");
    }
    const top = joined.details.filter((d) => d.what.startsWith("predicted "))
      .sort((a, b) => b.count - a.count)[0];
    const name = top?.what.slice("predicted ".length), k = info.classes.indexOf(name);
    const usual = x.from.estimate.prevalence?.[k];
    if (top && top.count >= oneSided * n && usual < oneSided) {
      out.push(`${percent(top.count / n)} of the members who joined are predicted ` +
        `${info.labels[k] ?? name}; of the community before it was ${percent(usual)}.`);
    }
  }
  const news = ["coefficients", "gamma"];
  const size = (kinds) => Math.abs(x.causes.filter((c) => kinds(c.kind))
    .reduce((sum, c) => sum + c.contribution[x.shown ?? 0], 0));
  if (size((kind) => news.includes(kind)) > size((kind) => !news.includes(kind))) {
    out.push("Most of this change is a better knowledge of the classifier, " +
      "not a change of opinions.");
  }
  return out;
}
