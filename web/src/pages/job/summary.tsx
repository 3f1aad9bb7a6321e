// What a job is about, at one look.
import type { JobView } from "../../api/types";
import { Card, Tile } from "../../parts/card";
import { Icon } from "../../parts/icons";
import { Ago, Took } from "../../parts/span";
import { hasEnded, newest } from "../../store/job";
import { rowOf } from "../../store/jobs";
import { count } from "../../when";
import { words } from "../../words";
import { NewestLines } from "./newest-lines";
import { RanksOnNodes } from "./nodes";
import { Timeline } from "./timeline";
import { Why } from "./why";

export function Summary({ job }: { job: JobView }) {
  const waits = job.phase === "queued" || job.phase === "waiting";
  return (
    <div class="scrolls">
      <FailureBar job={job} />
      <Tiles job={job} />
      {waits ? (
        <Why job={job} />
      ) : (
        <>
          <div class="columns">
            <Timeline job={job} />
            <RanksOnNodes job={job} />
          </div>
          <NewestLines job={job} />
        </>
      )}
    </div>
  );
}

function Tiles({ job }: { job: JobView }) {
  const row = rowOf(job);
  const titles = words.job.tiles;
  const nodes = new Set(newest(job)?.executions.map((each) => each.node).filter(Boolean)).size;
  const limit = (job.spec.restarts?.limit ?? 0) + 1;
  const ended = hasEnded(job);
  const model = job.spec.resources?.gpu_model;
  return (
    <dl class="tiles">
      <Tile title={titles.project} figure={row.project} more={words.job.by(row.owner)} />
      <Tile title={titles.executions} figure={count(row.executions)} more={words.job.onNodes(nodes)} />
      <Tile title={titles.gpus} figure={row.gpus ? count(row.gpus) : words.none} more={model ? `× ${model}` : ""} />
      <Tile title={titles.attempt} figure={row.attempt} more={limit > 1 ? words.job.of(limit) : ""} />
      {row.started === null && !ended ? (
        <Tile title={titles.waits} figure={<Took from={row.submitted} to={null} />} />
      ) : (
        <Tile title={ended ? titles.ran : titles.running} figure={<Took from={row.started} to={row.ended} />} />
      )}
      <Tile title={titles.submitted} figure={<Ago time={row.submitted} />} more={words.job.priority(row.priority)} />
    </dl>
  );
}

function FailureBar({ job: { failure, phase, summary } }: { job: JobView }) {
  if (!failure || phase !== "failed") return null;
  return (
    <>
      <div class="bar failed">
        <Icon name="cross" />
        <span>{summary}</span>
      </div>
      {failure.log_tail.length > 0 && (
        <Card title={words.job.logTail(failure.rank ?? 0)}>
          <pre class="tail" tabIndex={0}>
            {failure.log_tail.join("\n")}
          </pre>
        </Card>
      )}
    </>
  );
}
