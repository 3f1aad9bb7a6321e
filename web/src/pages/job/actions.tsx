// What can be done with a job. What somebody may not do is not there.
import { ask } from "../../api/ask";
import { sentence } from "../../api/problem";
import type { JobView } from "../../api/types";
import { confirm } from "../../parts/dialog";
import { tell } from "../../parts/toast";
import { go } from "../../router";
import { may } from "../../session";
import { hasEnded, newest } from "../../store/job";
import { words } from "../../words";

export function Actions({ job, take }: { job: JobView; take: (view: JobView) => void }) {
  if (!may("member", job.spec.project ?? "")) return null;
  const name = job.spec.name ?? job.id;
  const place = { in: { job: job.id } };
  const executions = Object.values(job.states).reduce((sum, each) => sum + each, 0);
  const nodes = new Set(newest(job)?.executions.map((each) => each.node).filter(Boolean)).size;
  const told = async (does: Promise<JobView>, said: string) => {
    take(await does);
    tell(said);
  };
  const failing = (does: Promise<void>) => void does.catch((error: unknown) => tell(sentence(error), "failed"));

  const stop = () =>
    confirm({
      title: words.job.stopAsked(name),
      text: words.job.stopText(executions, nodes),
      does: words.job.stopDoes,
      run: () => told(ask("POST /v1/jobs/{job}/stop", place), words.job.stopped(name)),
    });
  const suspend = () =>
    confirm({
      title: words.job.suspendAsked(name),
      text: words.job.suspendText(executions),
      does: words.job.suspendDoes,
      run: () => told(ask("POST /v1/jobs/{job}/suspend", place), words.job.suspended(name)),
    });
  const remove = () =>
    confirm({
      title: words.job.removeAsked(name),
      text: words.job.removeText,
      does: words.job.removeDoes,
      run: async () => {
        await ask("DELETE /v1/jobs/{job}", place);
        tell(words.job.removed(name));
        go("/jobs");
      },
    });
  const resubmit = async () => {
    const made = await ask("POST /v1/jobs/{job}/resubmit", place);
    tell(words.job.resubmitted(name));
    go(`/jobs/${made.id}`);
  };
  const resume = () => told(ask("POST /v1/jobs/{job}/resume", place), words.job.resumed(name));
  const release = () => told(ask("POST /v1/jobs/{job}/unhold", place), words.job.resumed(name));

  const kinds = job.reasons.map((reason) => reason.kind);
  return (
    <>
      <Action text={words.job.resubmit} run={() => failing(resubmit())} />
      {hasEnded(job) ? (
        <Action text={words.job.remove} run={remove} />
      ) : (
        <>
          {kinds.includes("suspended") && <Action text={words.job.resume} run={() => failing(resume())} />}
          {kinds.includes("user") && <Action text={words.job.release} run={() => failing(release())} />}
          {job.phase === "running" && <Action text={words.job.suspend} run={suspend} />}
          {job.phase !== "stopping" && <Action text={words.job.stop} run={stop} />}
        </>
      )}
    </>
  );
}

function Action({ text, run }: { text: string; run: () => void }) {
  return (
    <button type="button" class="button" onClick={run}>
      {text}
    </button>
  );
}
