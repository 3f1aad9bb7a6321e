// The lines of the newest attempt of a job. Parts of the page share them, and who comes to another part of it finds
// what was told already; of another job they begin anew.
import { useMemo } from "preact/hooks";
import type { LogLine } from "../../api/types";
import { hear, useLive } from "../../live";
import { Lines } from "../../store/logs";
import { words } from "../../words";

interface ToldLines {
  job: string;
  anew?: boolean;
  missed?: number;
  lines: LogLine[];
}

let shown = { job: "", lines: new Lines(words.job.log.missed) };

hear("logs", ({ logs }) => {
  const told = logs as ToldLines;
  if (told.job === shown.job) shown.lines.take(told);
});

/** The lines of a job, which are followed while a component is there. */
export function useLines(job: string): Lines {
  useLive(`logs:${job}`);
  return useMemo(() => {
    if (shown.job !== job) shown = { job, lines: new Lines(words.job.log.missed) };
    return shown.lines;
  }, [job]);
}
