// The order of rows, which settles once a second, and not while the pointer moves over them: then a number says how much
// waits.
import { effect, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

const SETTLES_AFTER = 1000; // milliseconds

export interface Settled {
  names: ReadonlySignal<readonly string[]>;
  /** Rows that came, went or moved and are not shown so yet; 0 while nothing holds the order. */
  waiting: ReadonlySignal<number>;
  held: Signal<boolean>;
  /** Show the order as it is. */
  settle: () => void;
}

/** `order` says the names in order; `choice` changes with what somebody has chosen, which is shown at once. */
export function useSettled(order: () => readonly string[], changed: ReadonlySignal<number>, choice: () => unknown): Settled {
  const made = useMemo(() => settled(order, changed, choice), []);
  useEffect(() => made.end, []);
  return made;
}

function settled(order: () => readonly string[], changed: ReadonlySignal<number>, choice: () => unknown) {
  const names = signal<readonly string[]>(order());
  const waiting = signal(0);
  const held = signal(false);
  let shown = performance.now();
  let timer: number | undefined;
  const settle = () => {
    clearTimeout(timer);
    timer = undefined;
    shown = performance.now();
    waiting.value = 0;
    const next = order();
    if (!isSame(names.peek(), next)) names.value = next;
  };
  const turn = () => {
    timer = undefined;
    if (held.peek() && names.peek().length) waiting.value = difference(names.peek(), order());
    else settle();
  };
  const ends = [
    effect(() => {
      void choice();
      queueMicrotask(settle);
    }),
    effect(() => {
      void changed.value;
      timer ??= window.setTimeout(turn, Math.max(0, SETTLES_AFTER - (performance.now() - shown)));
    }),
    effect(() => {
      if (!held.value) queueMicrotask(() => waiting.peek() && settle());
    }),
  ];
  return { names, waiting, held, settle, end: () => (clearTimeout(timer), ends.forEach((end) => end())) };
}

function isSame(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((each, index) => each === right[index]);
}

/** How many rows came, went, or stand elsewhere. */
function difference(before: readonly string[], after: readonly string[]): number {
  if (isSame(before, after)) return 0;
  const there = new Set(before);
  const stayed = after.filter((each) => there.has(each));
  const left = new Set(stayed);
  const came = after.length - stayed.length;
  const went = before.length - left.size;
  return came + went || before.filter((each, index) => each !== after[index]).length;
}

