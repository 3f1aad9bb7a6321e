// The job file, with all that was filled in.
import type { JobView } from "../../api/types";
import { CopyButton } from "../../parts/command";
import { words } from "../../words";
import { yaml } from "../../yaml";

export function File({ job }: { job: JobView }) {
  const text = yaml(job.spec);
  return (
    <div class="scrolls">
      <p class="second file-head">
        {words.job.fileText}
        <CopyButton text={text} what={words.job.file} />
      </p>
      <pre class="file" tabIndex={0} role="region" aria-label={words.job.file}>
        {text}
      </pre>
    </div>
  );
}
