// Builds elements. Strings only ever become text nodes or attribute values, so
// that names from the stream stay inert.

const svgNS = "http://www.w3.org/2000/svg";

function fill(node, attrs, children) {
  for (const [key, value] of Object.entries(attrs || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.flat(2).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

export function h(tag, attrs, ...children) {
  return fill(document.createElement(tag), attrs, children);
}

export function svg(tag, attrs, ...children) {
  return fill(document.createElementNS(svgNS, tag), attrs, children);
}

// setText changes the text of a node only if it differs, which spares layout.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// setAttr does the same for an attribute.
export function setAttr(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// download hands a file to the browser.
export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name.replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 120) }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
