/** The theme: the system's, or the reader's choice, which the browser keeps. */

export type Theme = "system" | "light" | "dark";

export const THEMES: readonly Theme[] = ["system", "light", "dark"];
const KEY = "barnabas.theme";

export function savedTheme(): Theme {
  const saved = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === saved) ?? "system";
}

const THEME_EVENT = "barnabas-theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** Shows the pages in the theme, and keeps the choice. With "system" they follow the system. */
export function applyTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  show();
}

/** Shows the pages in the saved theme, from now on. */
export function followTheme(): void {
  systemIsDark.addEventListener("change", show);
  show();
}

function show(): void {
  const theme = savedTheme();
  const isDark = theme === "dark" || (theme === "system" && systemIsDark.matches);
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
  dispatchEvent(new Event(THEME_EVENT));
}

/** Calls back after each change of the shown theme, for canvases, which no style repaints. Returns the end of that. */
export function onThemeChange(changed: () => void): () => void {
  addEventListener(THEME_EVENT, changed);
  return () => removeEventListener(THEME_EVENT, changed);
}

/** The colour of a custom property in the present theme. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
