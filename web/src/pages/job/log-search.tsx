// Looks for text in the lines that are there, and goes from hit to hit.
import { useComputed, type ReadonlySignal, type Signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { useKeys } from "../../keys";
import { plain } from "../../parts/ansi";
import { Icon } from "../../parts/icons";
import { choose, query } from "../../router";
import type { Line } from "../../store/logs";
import { words } from "../../words";

const text = words.job.log;

interface LogSearchProps {
  shown: ReadonlySignal<readonly Line[]>;
  /** What is looked for, in small letters. */
  wanted: ReadonlySignal<string>;
  /** The place of the hit where one is; -1: nowhere. */
  found: Signal<number>;
  follows: Signal<boolean>;
}

export function LogSearch({ shown, wanted, found, follows }: LogSearchProps) {
  const search = useRef<HTMLInputElement>(null);
  const hits = useComputed(() => {
    const looked = wanted.value;
    if (!looked) return [];
    return shown.value.flatMap((line, place) => (plain(line.text).toLowerCase().includes(looked) ? [place] : []));
  });
  const step = (by: 1 | -1) => {
    const all = hits.peek();
    if (!all.length) return;
    const next = by > 0 ? all.find((place) => place > found.peek()) : all.findLast((place) => place < found.peek());
    follows.value = false;
    found.value = next ?? (by > 0 ? all[0]! : all.at(-1)!);
  };
  useKeys([
    { keys: "/", does: text.search, run: () => search.current?.focus() },
    { keys: "f", does: text.follow, run: () => (follows.value = !follows.peek()) },
    { keys: "n", does: text.next, run: () => step(1) },
    { keys: "N", does: text.before, run: () => step(-1) },
  ]);
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") search.current?.blur();
  };
  return (
    <>
      <label class="search">
        <Icon name="search" />
        <input
          ref={search}
          type="search"
          aria-label={text.search}
          placeholder={text.search}
          value={query.value.get("find") ?? ""}
          onInput={(event) => {
            found.value = -1;
            choose({ find: event.currentTarget.value });
          }}
          onKeyDown={pressed}
        />
        <kbd>/</kbd>
      </label>
      {wanted.value && (
        <span class="second" role="status">
          {text.hits(hits.value.indexOf(found.value) + 1, hits.value.length)}
        </span>
      )}
    </>
  );
}
