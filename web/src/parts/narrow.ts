// How wide the window is, and whether it is as narrow as that of a phone; shell.css has the same width.
import { signal } from "@preact/signals";

const asked = matchMedia("(max-width: 700px)");

export const isNarrow = signal(asked.matches);

/** How wide the window is, in pixels. */
export const windowWidth = signal(innerWidth);

addEventListener("resize", () => (windowWidth.value = innerWidth));
asked.addEventListener("change", () => (isNarrow.value = asked.matches));
