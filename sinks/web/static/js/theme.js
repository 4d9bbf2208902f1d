// Sets the theme before the first paint; a classic script, so that it blocks.
(() => {
  const key = "gqlstream.theme";
  let stored = "auto";
  try { stored = localStorage.getItem(key) || "auto"; } catch { /* storage is off */ }
  const apply = (mode) => {
    if (mode === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = mode;
  };
  apply(stored);
  window.gqlTheme = {
    get mode() { return stored; },
    set(mode) {
      stored = mode;
      try { localStorage.setItem(key, mode); } catch { /* storage is off */ }
      apply(mode);
      window.dispatchEvent(new Event("themechange"));
    },
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    window.dispatchEvent(new Event("themechange")),
  );
})();
