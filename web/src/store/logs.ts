// Lines that a job has printed, as the stream tells them, and those before them once they are asked for.
import { signal, type ReadonlySignal } from "@preact/signals";
import { fetched } from "../api/ask";
import type { LogLine } from "../api/types";

export interface Line {
  rank: number;
  time: number;
  text: string;
  /** Whether it was written to stderr. */
  error: boolean;
  /** Whether more of it is to come. */
  partial: boolean;
}

/** Lines that are kept; the oldest go. */
const MOST_LINES = 200_000;

/** What stands where lines are missing. */
export type Gap = (missed: number) => string;

export class Lines {
  readonly #lines: Line[] = [];
  readonly #changed = signal(0);
  readonly #known = signal(false);
  readonly #gap: Gap;
  /** Lines of which more is to come, by rank and stream. */
  readonly #open = new Map<string, Line>();

  constructor(gap: Gap) {
    this.#gap = gap;
  }

  get all(): readonly Line[] {
    return this.#lines;
  }

  /** A number that grows with each change. */
  get changed(): ReadonlySignal<number> {
    return this.#changed;
  }

  /** Whether anything was told, be it that there is nothing. */
  get known(): ReadonlySignal<boolean> {
    return this.#known;
  }

  /** Take what the stream tells. */
  take(told: { anew?: boolean; missed?: number; lines: LogLine[] }): void {
    if (told.anew) {
      this.#lines.length = 0;
      this.#open.clear();
    }
    if (told.missed) this.#add({ rank: -1, time: Date.now(), text: this.#gap(told.missed), error: false, partial: false });
    for (const line of told.lines) this.#add(lineOf(line));
    this.#told();
  }

  /** Take lines from the beginning; of those that are there the ones stay which come after them. */
  takeEarlier(earlier: readonly LogLine[]): void {
    const there = this.#lines.splice(0);
    const last = new Map<number, number>();
    for (const each of earlier) {
      const line = lineOf(each);
      this.#add(line);
      last.set(line.rank, line.time);
    }
    for (const line of there) if (line.time > (last.get(line.rank) ?? 0)) this.#add(line);
    this.#told();
  }

  #add(line: Line): void {
    const of = `${line.rank} ${line.error}`;
    const before = this.#open.get(of);
    const at = before ? this.#lines.lastIndexOf(before) : -1;
    const whole = before && at >= 0 ? { ...before, text: before.text + line.text, partial: line.partial } : line;
    if (at >= 0) this.#lines[at] = whole;
    else this.#lines.push(whole);
    if (whole.partial) this.#open.set(of, whole);
    else this.#open.delete(of);
  }

  #told(): void {
    if (this.#lines.length > MOST_LINES) this.#lines.splice(0, this.#lines.length - MOST_LINES);
    this.#known.value = true;
    this.#changed.value += 1;
  }
}

/** The lines of a job from its beginning, at most so many of each rank. */
export async function earlierLines(job: string, tail: number, attempt?: number): Promise<LogLine[]> {
  const answer = await fetched("GET /v1/jobs/{job}/logs", {
    in: { job },
    query: { tail, attempt },
    headers: { Accept: "application/x-ndjson" },
  });
  const lines = (await answer.text()).split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as LogLine).filter((line) => "rank" in line);
}

function lineOf(line: LogLine): Line {
  const text = typeof line.text === "string" ? line.text : atob(line.text.base64);
  return { rank: line.rank, time: Date.parse(line.time), text, error: line.stream === "stderr", partial: line.partial };
}
