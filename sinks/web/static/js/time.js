// Times for people, all in the time zone of the reader, which every page names.

const clock = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const minute = 60, hour = 3600, day = 86400;

// zone names the time zone of the reader, such as "Europe/Berlin, UTC+1".
export function zone() {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  if (timeZone === "UTC") return "UTC";
  const parts = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset" }).formatToParts();
  const offset = parts.find((p) => p.type === "timeZoneName")?.value.replace("GMT", "UTC") ?? "";
  return offset && offset !== timeZone ? `${timeZone}, ${offset}` : timeZone;
}

// moment writes an ISO time to the minute; seconds are for short spans.
export function moment(text, seconds = false) {
  const at = typeof text === "number" ? 1000 * text : Date.parse(text);
  if (!Number.isFinite(at)) return "–";
  return (seconds ? exact : clock).format(at);
}

// steps between ticks, from a second to a year.
const steps = [1, 2, 5, 10, 15, 30, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute,
  30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day,
  28 * day, 91 * day, 182 * day, 364 * day];

const two = (n) => String(n).padStart(2, "0");

// timeTicks returns about count ticks between two Unix seconds, each with its words.
export function timeTicks(from, to, count) {
  const step = steps.find((s) => (to - from) / s <= count) ?? steps.at(-1);
  const shift = new Date(1000 * from).getTimezoneOffset() * minute;
  const ticks = [];
  let last = "";
  for (let t = Math.ceil((from - shift) / step) * step + shift; t <= to; t += step) {
    const d = new Date(1000 * t);
    const date = d.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
    const time = `${two(d.getHours())}:${two(d.getMinutes())}`;
    const words = step < minute ? `${time}:${two(d.getSeconds())}` : time;
    ticks.push({ at: t, text: step >= day || last && last !== date ? date : words });
    last = date;
  }
  return ticks;
}
