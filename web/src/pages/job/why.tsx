// Why a job waits, as `muster why` says it.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask } from "../../api/ask";
import { sentence } from "../../api/problem";
import type { Explanation, JobView } from "../../api/types";
import { Card } from "../../parts/card";
import { Command } from "../../parts/command";
import { Failure } from "../../parts/failure";
import { SkeletonRows } from "../../parts/skeleton";
import { exact, ms } from "../../when";
import { words } from "../../words";

const text = words.job.why;

export function Why({ job }: { job: JobView }) {
  const found = useSignal<Explanation | null>(null);
  const failed = useSignal("");
  const look = () => {
    failed.value = "";
    ask("GET /v1/jobs/{job}/why", { in: { job: job.id } }).then(
      (explanation) => (found.value = explanation),
      (error: unknown) => (failed.value = sentence(error)),
    );
  };
  useEffect(look, [job.id, job.summary, job.phase]);
  if (failed.value) return <Failure text={failed.value} again={look} />;
  const why = found.value;
  if (!why) return <SkeletonRows rows={4} />;
  const start = ms(why.estimate.about);
  const rest = [why.queue_position ? text.place(why.queue_position) : "", start === null ? "" : text.about(exact(start))];
  return (
    <Card title={text.title} aside={<Command text={`muster why ${job.id}`} />}>
      <div class="why">
        <p>
          {why.summary}. {rest.join(" ")}
        </p>
        <Told title={text.helps} pairs={why.changes.map((each) => [each.change, each.why])} />
        <Told title={text.lacks} pairs={why.refusals.map((each) => [each.node, each.reason])} />
      </div>
    </Card>
  );
}

function Told({ title, pairs }: { title: string; pairs: readonly (readonly [string, string])[] }) {
  if (!pairs.length) return null;
  return (
    <>
      <h3>{title}</h3>
      <dl class="pairs">
        {pairs.map(([name, said]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{said}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
