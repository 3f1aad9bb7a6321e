// The newest lines of a job on its summary.
import { useComputed, useSignal } from "@preact/signals";
import type { JobView } from "../../api/types";
import { Card } from "../../parts/card";
import { LogView } from "../../parts/log-view";
import { words } from "../../words";
import { useLines } from "./lines";

const SHOWN = 400;
const LINE = 18; // pixels, as in log.css

export function NewestLines({ job }: { job: JobView }) {
  const lines = useLines(job.id);
  const shown = useComputed(() => (lines.changed.value, lines.all.slice(-SHOWN)));
  const follows = useSignal(true);
  return (
    <Card title={words.job.log.newest} aside={<a href={`/jobs/${job.id}?tab=logs`}>{words.job.log.all}</a>}>
      {shown.value.length ? (
        <div class="log-card" style={{ height: `${shown.value.length * LINE}px` }}>
          <LogView label={words.job.log.newest} lines={shown} follows={follows} times ranks />
        </div>
      ) : (
        <p class="second card-text">{words.job.log.none}</p>
      )}
    </Card>
  );
}
