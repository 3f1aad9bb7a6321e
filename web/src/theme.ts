// The theme: that of the system, unless somebody has fixed one in this browser.
import { effect, signal } from "@preact/signals";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEPT = "muster.theme";
const kept = localStorage.getItem(KEPT);

export const theme = signal<Theme>(THEMES.find((each) => each === kept) ?? "system");

export function followTheme(): void {
  effect(() => {
    if (theme.value === "system") {
      localStorage.removeItem(KEPT);
      delete document.documentElement.dataset["theme"];
    } else {
      localStorage.setItem(KEPT, theme.value);
      document.documentElement.dataset["theme"] = theme.value;
    }
  });
}
