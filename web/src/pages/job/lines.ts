// The lines of the newest attempt of a job, while a component is there.
import { useEffect, useMemo } from "preact/hooks";
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

export function useLines(job: string): Lines {
  const lines = useMemo(() => new Lines(words.job.log.missed), [job]);
  useLive(`logs:${job}`);
  useEffect(
    () =>
      hear("logs", ({ logs }) => {
        const told = logs as ToldLines;
        if (told.job === job) lines.take(told);
      }),
    [job],
  );
  return lines;
}
