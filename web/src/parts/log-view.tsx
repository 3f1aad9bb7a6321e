// Lines of many ranks, as they come: as many nodes as fit are used again, so that 200,000 lines scroll as ten do.
import { computed, useComputed, useSignal, useSignalEffect, type ReadonlySignal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Line } from "../store/logs";
import { clock, exact } from "../when";
import { runsOf } from "./ansi";

const HEIGHT = 18;
const MORE = 10; // lines beyond those that are seen

interface LogViewProps {
  label: string;
  lines: ReadonlySignal<readonly Line[]>;
  /** Whether the newest line stays in sight. */
  follows: Signal<boolean>;
  times?: boolean;
  ranks?: boolean;
  /** What is looked for, in small letters. */
  wanted?: string;
  /** The line that was found, by its place. */
  found?: ReadonlySignal<number>;
}

export function LogView(props: LogViewProps) {
  const { lines, follows, found } = props;
  const port = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(300);
  useEffect(() => {
    const watched = new ResizeObserver(([entry]) => (height.value = entry?.contentRect.height ?? height.value));
    watched.observe(port.current!);
    return () => watched.disconnect();
  }, []);
  useSignalEffect(() => {
    const bottom = lines.value.length * HEIGHT;
    if (follows.value) queueMicrotask(() => port.current?.scrollTo(0, bottom + height.peek()));
  });
  useSignalEffect(() => {
    const place = found?.value ?? -1;
    if (place >= 0) port.current?.scrollTo(0, Math.max(0, place * HEIGHT - height.peek() / 2));
  });
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = port.current!;
    const isAtEnd = scrollTop + clientHeight >= scrollHeight - HEIGHT;
    if (scrollTop < top.peek() && !isAtEnd) follows.value = false;
    top.value = scrollTop;
  };
  const first = useComputed(() => Math.max(0, Math.floor(top.value / HEIGHT) - MORE / 2));
  const slots = useComputed(() => Math.ceil(height.value / HEIGHT) + MORE);
  return (
    <div ref={port} class="log" role="log" aria-live="off" aria-label={props.label} tabIndex={0} onScroll={scrolled}>
      <div class="log-lines" style={{ height: `${lines.value.length * HEIGHT}px` }}>
        {Array.from({ length: slots.value }, (_, slot) => (
          <LogSlot key={slot} slot={slot} slots={slots.value} first={first} {...props} />
        ))}
      </div>
    </div>
  );
}

interface LogSlotProps extends LogViewProps {
  slot: number;
  slots: number;
  first: ReadonlySignal<number>;
}

function LogSlot({ slot, slots, first, lines, times, ranks, wanted, found }: LogSlotProps) {
  const place = useMemo(
    () => computed(() => first.value + ((((slot - first.value) % slots) + slots) % slots)),
    [slot, slots, first],
  );
  const shown = useMemo(() => computed(() => lines.value[place.value]), [lines, place]);
  const line = shown.value;
  if (!line) return null;
  const isFound = wanted ? line.text.toLowerCase().includes(wanted) : false;
  const classes = ["log-line"];
  if (line.rank < 0) classes.push("gap");
  if (isFound) classes.push(found?.value === place.value ? "hit here" : "hit");
  return (
    <div class={classes.join(" ")} style={{ transform: `translateY(${place.value * HEIGHT}px)` }}>
      {ranks && line.rank >= 0 && <span class={`log-rank rank-${line.rank % 8}`}>[{line.rank}]</span>}
      {times && <time title={exact(line.time)}>{clock(line.time)}</time>}
      <span class={line.error ? "log-text error" : "log-text"}>
        {runsOf(line.text).map((run, index) =>
          run.link ? (
            <a key={index} class={run.style} href={run.link} target="_blank" rel="noopener noreferrer">
              {run.text}
            </a>
          ) : run.style ? (
            <span key={index} class={run.style}>
              {run.text}
            </span>
          ) : (
            run.text
          ),
        )}
      </span>
    </div>
  );
}
