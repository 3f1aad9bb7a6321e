// Where one is: the path and what stands behind the `?`, as signals. Links are plain `<a href>`; a click on one of this
// console stays in the page.
import { computed, signal } from "@preact/signals";

const place = signal(location.pathname + location.search);

/** The path, like `/jobs/tvpdtfjd`. */
export const path = computed(() => new URL(place.value, location.origin).pathname);
/** What stands behind the `?`. */
export const query = computed(() => new URLSearchParams(new URL(place.value, location.origin).search));

/** Go to a page of this console; `replace`: without a step back to where one was. */
export function go(to: string, replace = false): void {
  if (to === place.value) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  const before = path.value;
  place.value = location.pathname + location.search;
  if (!replace && path.value !== before) scrollTo(0, 0);
}

/** Change parameters of this page; empty ones go. It is no step of its own, unless `step` says so. */
export function choose(changed: Record<string, string>, step = false): void {
  const next = new URLSearchParams(query.value);
  for (const [name, value] of Object.entries(changed)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const written = next.toString().replaceAll("%2C", ",");
  go(path.value + (written ? `?${written}` : ""), !step);
}

/** The values of a parameter that has several with commas between them. */
export function chosen(name: string): string[] {
  return (query.value.get(name) ?? "").split(",").filter(Boolean);
}

/** What a pattern like `/jobs/:job` finds in a path; null: it does not fit. */
export function matched(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/");
  const there = path.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== there.length) return null;
  const found: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = there[index] ?? "";
    if (part.startsWith(":") && value) found[part.slice(1)] = decoded(value);
    else if (part !== value) return null;
  }
  return found;
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/** Have clicks on links stay in the page, and follow the browser's back and forward. */
export function followLinks(): void {
  addEventListener("popstate", () => (place.value = location.pathname + location.search));
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (/^\/(v1\/|metrics|healthz|readyz|assets\/)/.test(link.pathname)) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
