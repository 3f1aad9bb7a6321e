// The columns of the list of jobs, and a job where the window is narrow.
import { Phase } from "../../parts/status";
import { Ago, Took } from "../../parts/span";
import type { Column } from "../../parts/table";
import type { JobRow } from "../../store/jobs";
import { count } from "../../when";
import { words } from "../../words";

const titles = words.jobs.columns;

export const columns: readonly Column<JobRow>[] = [
  { key: "phase", title: titles.phase, width: "116px", sorts: true, cell: (job) => <Phase phase={job.phase} /> },
  { key: "name", title: titles.name, width: "minmax(180px, 2fr)", sorts: true, cell: (job) => <Name job={job} /> },
  { key: "project", title: titles.project, width: "minmax(80px, 0.7fr)", sorts: true, cell: (job) => job.project },
  {
    key: "owner",
    title: titles.owner,
    width: "minmax(72px, 0.6fr)",
    from: 1280,
    sorts: true,
    cell: (job) => job.owner || words.none,
  },
  {
    key: "executions",
    title: titles.executions,
    width: "84px",
    end: true,
    sorts: true,
    cell: (job) => (isUnderWay(job) ? `${count(job.running)} / ${count(job.executions)}` : count(job.executions)),
  },
  { key: "gpus", title: titles.gpus, width: "64px", end: true, sorts: true, cell: (job) => gpus(job) },
  {
    key: "submitted",
    title: titles.submitted,
    width: "84px",
    end: true,
    from: 1120,
    sorts: true,
    cell: (job) => <Ago time={job.submitted} />,
  },
  {
    key: "ran",
    title: titles.ran,
    width: "96px",
    end: true,
    sorts: true,
    cell: (job) => <Took from={job.started} to={job.ended} />,
  },
  {
    key: "summary",
    title: titles.summary,
    width: "minmax(120px, 2.2fr)",
    cell: (job) => (
      <span class="second" title={job.summary}>
        {job.summary}
      </span>
    ),
  },
];

export function card(job: JobRow) {
  return (
    <>
      <div class="card-line">
        <Name job={job} />
        <Phase phase={job.phase} />
      </div>
      <div class="card-line second">
        <span>{[job.project, job.owner, job.gpus ? `${gpus(job)} ${titles.gpus}` : ""].filter(Boolean).join(" · ")}</span>
        <Took from={job.started} to={job.ended} />
      </div>
      <div class="card-line second">
        <span>{job.summary}</span>
      </div>
    </>
  );
}

function Name({ job }: { job: JobRow }) {
  return (
    <span class="name">
      <a href={`/jobs/${job.id}`} title={job.name}>
        {job.name}
      </a>
      <code>{job.id}</code>
    </span>
  );
}

function isUnderWay(job: JobRow): boolean {
  return job.running > 0 || job.phase === "running" || job.phase === "preparing";
}

function gpus(job: JobRow): string {
  return job.gpus ? count(Number(job.gpus.toFixed(2))) : words.none;
}
