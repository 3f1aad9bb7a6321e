// Jobs as the list shows them.
import type { JobPhase, JobView } from "../api/types";
import { ms } from "../when";
import { Rows } from "./rows";

export interface JobRow {
  id: string;
  name: string;
  project: string;
  owner: string;
  phase: JobPhase;
  summary: string;
  /** Its place among all that were submitted. */
  sequence: number;
  executions: number;
  running: number;
  gpus: number;
  attempt: number;
  priority: number;
  submitted: number;
  started: number | null;
  ended: number | null;
}

/** A job as the stream tells lists of it (`job_rows`). */
export interface BriefJob {
  id: string;
  name: string;
  project: string;
  owner: string;
  phase: JobPhase;
  summary: string;
  sequence: number;
  executions: number;
  running: number;
  gpus: number;
  attempt: number;
  priority: number;
  submitted_at: string;
  started_at: string | null;
  ended_at: string | null;
}

export const jobs = new Rows<JobRow>("job_rows", (job: BriefJob) => job.id, briefRow);

/** A job as the stream tells it. */
export function briefRow({ submitted_at, started_at, ended_at, ...rest }: BriefJob): JobRow {
  return { ...rest, submitted: ms(submitted_at) ?? 0, started: ms(started_at), ended: ms(ended_at) };
}

/** A whole job as a row. */
export function rowOf(job: JobView): JobRow {
  const { spec } = job;
  const roles: readonly RoleKeys[] = spec.roles ?? [spec];
  const executions = Object.values(job.states).reduce((sum, each) => sum + each, 0);
  return {
    id: job.id,
    name: spec.name ?? "",
    project: spec.project ?? "",
    owner: job.owner,
    phase: job.phase,
    summary: job.summary,
    sequence: job.sequence,
    executions: executions || roles.reduce((sum, role) => sum + workersOf(role), 0),
    running: job.states["running"] ?? 0,
    gpus: roles.reduce((sum, role) => sum + workersOf(role) * gpusOf(role), 0),
    attempt: job.attempts.at(-1)?.number ?? 0,
    priority: spec.priority ?? 0,
    submitted: ms(job.submitted_at) ?? 0,
    started: ms(job.started_at),
    ended: ms(job.ended_at),
  };
}

interface RoleKeys {
  workers?: unknown;
  count?: unknown;
  resources?: { gpus?: unknown } | undefined;
}

function workersOf(role: RoleKeys): number {
  return Number(role.workers ?? role.count ?? 1) || 1;
}

function gpusOf(role: RoleKeys): number {
  return Number(role.resources?.gpus ?? 0) || 0;
}
