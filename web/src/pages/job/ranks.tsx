// The ranks of an attempt, as a table.
import { useComputed, useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ask } from "../../api/ask";
import { sentence } from "../../api/problem";
import type { AttemptView, ExecutionView, JobView } from "../../api/types";
import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { Table } from "../../parts/table";
import { choose, query } from "../../router";
import { newest } from "../../store/job";
import { words } from "../../words";
import { card, columns } from "./rank-columns";

export function Ranks({ job }: { job: JobView }) {
  const failed = useSignal("");
  const older = useSignal<AttemptView | null>(null);
  const last = newest(job)?.number ?? 0;
  const number = Number(query.value.get("attempt") ?? last) || last;
  useEffect(() => {
    older.value = null;
    failed.value = "";
    if (number === last) return;
    ask("GET /v1/jobs/{job}", { in: { job: job.id }, query: { attempt: number } }).then(
      (view) => (older.value = view.attempts.find((each) => each.number === number) ?? null),
      (error: unknown) => (failed.value = sentence(error)),
    );
  }, [number, last]);
  const attempt = number === last ? newest(job) : older.value;
  return (
    <>
      {last > 1 && <AttemptChoice job={job} number={number} last={last} />}
      {failed.value && <Failure text={failed.value} />}
      {attempt?.executions.length ? (
        <RankTable executions={attempt.executions} job={job.id} />
      ) : (
        <Empty
          title={words.job.ranks}
          text={attempt?.executions_dropped ? words.job.timeline.dropped : words.job.timeline.none}
        />
      )}
    </>
  );
}

function AttemptChoice({ job, number, last }: { job: JobView; number: number; last: number }) {
  const change = (chosen: string) => choose({ attempt: chosen === String(last) ? "" : chosen });
  return (
    <div class="toolbar">
      <select
        aria-label={words.job.log.attemptLabel}
        value={String(number)}
        onChange={(event) => change(event.currentTarget.value)}
      >
        {job.attempts.map((each) => (
          <option key={each.number} value={String(each.number)}>
            {words.job.log.attempt(each.number)}
          </option>
        ))}
      </select>
    </div>
  );
}

function RankTable({ executions, job }: { executions: readonly ExecutionView[]; job: string }) {
  const rows = useSignal<ReadonlyMap<string, ExecutionView>>(new Map());
  const byName = useMemo(() => new Map(executions.map((each) => [String(each.rank), each])), [executions]);
  useEffect(() => {
    rows.value = byName;
  }, [byName]);
  const names = useComputed(() => [...rows.value.keys()]);
  const at = useCells(rows);
  const order = useSignal("");
  return (
    <Table
      label={words.job.ranks}
      columns={columns}
      names={names}
      at={at}
      link={(name) => `/jobs/${job}?tab=logs&rank=${name}`}
      card={card}
      order={order}
      sort={() => undefined}
    />
  );
}

/** What each row is; one that is not looked at costs nothing. */
function useCells(rows: ReadonlySignal<ReadonlyMap<string, ExecutionView>>) {
  return useMemo(
    () => (name: string) => ({
      get value() {
        return rows.value.get(name);
      },
    }),
    [rows],
  );
}
