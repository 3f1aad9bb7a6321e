// One job that somebody looks at: asked for once, then told by the stream.
import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ask } from "../api/ask";
import { sentence } from "../api/problem";
import type { AttemptView, ExecutionView, JobView } from "../api/types";
import { hear, useLive } from "../live";

export interface WatchedJob {
  view: ReadonlySignal<JobView | null>;
  failed: ReadonlySignal<string>;
  /** Take in what an action has answered. */
  take: (view: JobView) => void;
  again: () => void;
}

/** The job of an id or a name, for as long as a component is there. */
export function useJob(name: string): WatchedJob {
  const watched = useMemo(() => {
    const view = signal<JobView | null>(null);
    const failed = signal("");
    const take = (told: JobView) => (view.value = told);
    const again = () => {
      failed.value = "";
      ask("GET /v1/jobs/{job}", { in: { job: name } }).then(take, (error: unknown) => (failed.value = sentence(error)));
    };
    return { view, failed, take, again };
  }, [name]);
  useEffect(watched.again, [watched]);
  const id = watched.view.value?.id;
  useLive(id ? `job:${id}` : ""); // not before it is known to be there: a stream tells of all that it is asked, or of nothing
  useEffect(() => hear("job", ({ job }) => (job as JobView).id === id && watched.take(job as JobView)), [id]);
  return watched;
}

/** The newest attempt. */
export function newest(job: JobView): AttemptView | undefined {
  return job.attempts.at(-1);
}

/** When an execution came to a state; null: it did not. */
export function reached(execution: ExecutionView, state: ExecutionView["state"]): number | null {
  const found = execution.transitions.find((each) => each.state === state);
  return found ? Date.parse(found.at) : null;
}

export function hasEnded(job: JobView): boolean {
  return job.phase === "succeeded" || job.phase === "failed" || job.phase === "stopped";
}
