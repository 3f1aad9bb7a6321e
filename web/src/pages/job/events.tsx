// What happened to a job, the newest first.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask } from "../../api/ask";
import { sentence } from "../../api/problem";
import type { JobEvent, JobView } from "../../api/types";
import { Failure } from "../../parts/failure";
import { SkeletonRows } from "../../parts/skeleton";
import { exact } from "../../when";
import { words } from "../../words";

export function Events({ job }: { job: JobView }) {
  const events = useSignal<readonly JobEvent[] | null>(null);
  const failed = useSignal("");
  const look = () => {
    failed.value = "";
    ask("GET /v1/jobs/{job}/events", { in: { job: job.id } }).then(
      ({ items }) => (events.value = [...items].reverse()),
      (error: unknown) => (failed.value = sentence(error)),
    );
  };
  useEffect(look, [job.id, job.phase, job.summary]);
  if (failed.value) return <Failure text={failed.value} again={look} />;
  if (!events.value) return <SkeletonRows />;
  return (
    <div class="scrolls" role="region" aria-label={words.job.events} tabIndex={0}>
      <ol class="events">
        {events.value.map((event) => (
          <li key={event.number}>
            <time class="third">{exact(Date.parse(event.at))}</time>
            <b>{event.kind.replaceAll("_", " ")}</b>
            <span>{event.text}</span>
            {event.attempt > 1 && <span class="third">{words.job.log.attempt(event.attempt)}</span>}
          </li>
        ))}
      </ol>
    </div>
  );
}
