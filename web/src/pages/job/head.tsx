// What a job is called, and what it does.
import type { JobView } from "../../api/types";
import { CopyButton } from "../../parts/command";
import { Phase } from "../../parts/status";
import { words } from "../../words";

export function Head({ job }: { job: JobView }) {
  return (
    <div class="job-head">
      <h1 title={job.spec.name}>{job.spec.name}</h1>
      <code>{job.id}</code>
      <CopyButton text={job.id} what={words.job.id} />
      <Phase phase={job.phase} />
      <span class="second" title={job.summary}>
        {job.summary}
      </span>
    </div>
  );
}
