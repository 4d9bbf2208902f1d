// The address holds the state of a view, so that it can be shared: "#/c/NAME?method=auto&class=1".

// read returns the page and its parameters; the page "unknown" is none of ours.
export function read(hash = location.hash) {
  const cut = hash.indexOf("?");
  const path = (cut < 0 ? hash : hash.slice(0, cut)).slice(1) || "/";
  const query = new URLSearchParams(cut < 0 ? "" : hash.slice(cut + 1));
  const pages = { "/": "communities", "/pipeline": "pipeline", "/alerts": "alerts",
    "/charts": "charts", "/classifier": "classifier" };
  if (pages[path]) return { page: pages[path], path, query };
  if (path.startsWith("/c/") && path.length > 3) {
    try {
      const name = decodeURIComponent(path.slice(3)),
        two = /^difference\((.+?), (.+)\)$/.exec(name);
      if (!two) return { page: "detail", path, query, name };
      // Alerts about a difference link to the first community, compared with the second.
      query.append("with", `~${two[2]}`);
      return {
        page: "detail",
        path: `/c/${encodeURIComponent(two[1])}`,
        query,
        name: two[1],
        about: name,
      };
    } catch { /* not ours */ }
  }
  return { page: "unknown", path, query };
}

// link returns an address. Parameters that are empty are left out; a list is repeated.
export function link(path, params = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    for (const one of [value].flat())
      if (one !== "" && one !== null && one !== undefined) query.append(key, one);
  }
  const text = query.toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

export const community = (name, params) => link(`/c/${encodeURIComponent(name)}`, params);

// replace changes the address without a new entry in the browser's history.
export function replace(path, params) {
  const to = link(path, params);
  if (to !== location.hash) history.replaceState(null, "", to);
}

// whole reads a number of the query from 0 to below a limit; null for any other.
export function whole(query, name, limit = Infinity) {
  const text = query.get(name);
  return text !== null && /^\d+$/.test(text) && Number(text) < limit ? Number(text) : null;
}

// moment reads a time of the query as Unix seconds; null for any other.
export function moment(query, name) {
  const at = Date.parse(query.get(name) ?? "") / 1000;
  return Number.isFinite(at) ? at : null;
}

export const iso = (seconds) => new Date(1000 * seconds).toISOString().replace(/\.000Z$/, "Z");
