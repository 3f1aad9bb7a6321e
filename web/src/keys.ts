// Keys: a letter, or two in a row like `g j`. They count wherever nobody types, and stand in the list that `?` shows.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export interface Key {
  keys: string;
  /** What it does, as the list of keys says it. */
  does: string;
  run: () => void;
}

export const bound = signal<readonly Key[]>([]);

const WITHIN = 1000; // milliseconds between the two keys of a sequence
let first = "";
let firstAt = 0;

/** Have keys do something while a component is there; the newest binding of a key counts. */
export function useKeys(keys: readonly Key[]): void {
  useEffect(() => {
    bound.value = [...bound.peek(), ...keys];
    return () => (bound.value = bound.peek().filter((each) => !keys.includes(each)));
  }, []);
}

export function followKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
    const sequence = first && event.timeStamp - firstAt < WITHIN ? `${first} ${event.key}` : "";
    const found = bound.peek().findLast((each) => each.keys === sequence) ??
      bound.peek().findLast((each) => each.keys === event.key);
    first = found ? "" : event.key;
    firstAt = event.timeStamp;
    if (!found) return;
    event.preventDefault();
    found.run();
  });
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.closest("dialog")) return true;
  if (target instanceof HTMLInputElement) return target.type !== "checkbox" && target.type !== "radio";
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
