// Before the first paint, and therefore not a module: the chosen theme must not flash the other one.
try {
  const theme = localStorage.getItem("tenure.theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden: the theme of the system is used.
}
