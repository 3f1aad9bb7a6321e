// Which jobs are shown, and in which order: all of it stands in the address.
import type { JobPhase } from "../../api/types";
import type { JobRow } from "../../store/jobs";
import { words } from "../../words";

export const PHASES = Object.keys(words.phases) as JobPhase[];

export interface Filters {
  text: string;
  phases: readonly string[];
  project: string;
  owner: string;
}

export function filtersOf(query: URLSearchParams): Filters {
  return {
    text: (query.get("q") ?? "").trim().toLowerCase(),
    phases: (query.get("phase") ?? "").split(",").filter(Boolean),
    project: query.get("project") ?? "",
    owner: query.get("owner") ?? "",
  };
}

/** Whether a job is meant, whatever its phase is. */
export function isMeant(job: JobRow, { text, project, owner }: Filters): boolean {
  if (project && job.project !== project) return false;
  if (owner && job.owner !== owner) return false;
  if (!text) return true;
  return [job.name, job.id, job.owner, job.project].some((each) => each.toLowerCase().includes(text));
}

const VALUES: Record<string, (job: JobRow, now: number) => number | string> = {
  phase: (job) => PHASES.indexOf(job.phase),
  name: (job) => job.name,
  project: (job) => job.project,
  owner: (job) => job.owner,
  executions: (job) => job.executions,
  gpus: (job) => job.gpus,
  priority: (job) => job.priority,
  submitted: (job) => job.sequence,
  ran: (job, now) => (job.started === null ? -1 : (job.ended ?? now) - job.started),
};

/** The names of the jobs that are shown, in order. The newest come first, also among those that are alike. */
export function ordered(jobs: Iterable<JobRow>, filters: Filters, order: string, now: number): string[] {
  const shown = [...jobs].filter(
    (job) => (!filters.phases.length || filters.phases.includes(job.phase)) && isMeant(job, filters),
  );
  const value = VALUES[order.replace(/^-/, "")];
  const sign = order.startsWith("-") ? -1 : 1;
  if (!value) return shown.sort((a, b) => b.sequence - a.sequence).map((job) => job.id);
  const keyed = shown.map((job) => ({ job, key: value(job, now) }));
  keyed.sort((a, b) => sign * compared(a.key, b.key) || b.job.sequence - a.job.sequence);
  return keyed.map(({ job }) => job.id);
}

function compared(a: number | string, b: number | string): number {
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  return Number(a) - Number(b);
}

/** How many jobs are in each phase, and which projects and owners there are, among those that are meant. */
export function counted(jobs: Iterable<JobRow>, filters: Filters) {
  const phases = new Map<string, number>();
  const projects = new Set<string>();
  const owners = new Set<string>();
  let all = 0;
  for (const job of jobs) {
    projects.add(job.project);
    owners.add(job.owner);
    if (!isMeant(job, filters)) continue;
    all += 1;
    phases.set(job.phase, (phases.get(job.phase) ?? 0) + 1);
  }
  return { all, phases, projects: [...projects].sort(), owners: [...owners].filter(Boolean).sort() };
}
