// How the ranks of an attempt came together, as bars of time.
import type { AttemptView, ExecutionView } from "../../api/types";
import { reached } from "../../store/job";

export const STEPS = ["preparing", "waiting", "armed", "running"] as const;
export type Step = (typeof STEPS)[number];

export interface Bar {
  rank: number;
  node: string;
  /** When each step began and ended, in milliseconds. */
  steps: readonly { step: Step; from: number; to: number }[];
  /** When it checked in; infinite: it has not yet. */
  checkedIn: number;
}

/** The bars of all ranks that have a node. A step that goes on ends now. */
export function barsOf(attempt: AttemptView, now: number): Bar[] {
  return attempt.executions.flatMap((execution) => barOf(execution, now) ?? []);
}

function barOf(execution: ExecutionView, now: number): Bar | null {
  const placed = reached(execution, "placed");
  if (placed === null || execution.node === null) return null;
  const checkedIn = reached(execution, "checked_in");
  const times = [placed, checkedIn, reached(execution, "armed"), reached(execution, "running")];
  const last = execution.transitions.at(-1);
  const isOver = last !== undefined && /succeeded|failed|stopped|lost/.test(last.state);
  const end = isOver ? Date.parse(last.at) : now;
  const steps = STEPS.flatMap((step, index) => {
    const from = times[index] ?? null;
    if (from === null) return [];
    const next = times.slice(index + 1).find((time) => time !== null);
    return [{ step, from, to: next ?? Math.max(end, from) }];
  });
  return { rank: execution.rank, node: execution.node, steps, checkedIn: checkedIn ?? Infinity };
}

/** What the picture shows: from the placement until a little after all ran, or until now. */
export function rangeOf(bars: readonly Bar[]): { begin: number; end: number } {
  const begin = Math.min(...bars.map((bar) => bar.steps[0]!.from));
  const starts = bars.map((bar) => bar.steps.find(({ step }) => step === "running")?.from ?? Infinity);
  const all = Math.max(...starts);
  const last = Number.isFinite(all) ? all + (all - begin) * 0.2 : Math.max(...bars.map((bar) => bar.steps.at(-1)!.to));
  return { begin, end: Math.max(last, begin + 100) };
}

/** Who checked in last, or has not yet. */
export function lastOf(bars: readonly Bar[]): Bar {
  return bars.reduce((found, bar) => (bar.checkedIn > found.checkedIn ? bar : found));
}
