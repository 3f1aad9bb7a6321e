// Which rank is on which node.
import type { ExecutionView, JobView } from "../../api/types";
import { Card } from "../../parts/card";
import { STATES } from "../../parts/state";
import { newest } from "../../store/job";
import { words } from "../../words";

const text = words.job.nodes;

export function RanksOnNodes({ job }: { job: JobView }) {
  const nodes = new Map<string, ExecutionView[]>();
  for (const each of newest(job)?.executions ?? []) {
    if (each.node === null) continue;
    const there = nodes.get(each.node);
    if (there) there.push(each);
    else nodes.set(each.node, [each]);
  }
  const sorted = [...nodes].sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    <Card title={text.title}>
      {sorted.length ? (
        <div class="rank-map" tabIndex={0} role="group" aria-label={text.title}>
          {sorted.map(([node, executions]) => (
            <div key={node} class="rank-node">
              <span class="rank-name" title={node}>
                {node}
              </span>
              <span class="rank-chips">
                {executions.map((each) => (
                  <Chip key={each.rank} execution={each} />
                ))}
              </span>
              <span class="second">{gpusOf(executions)}</span>
            </div>
          ))}
        </div>
      ) : (
        <p class="second card-text">{text.none}</p>
      )}
    </Card>
  );
}

function gpusOf(executions: readonly ExecutionView[]): string {
  const gpus = executions.reduce((sum, each) => sum + each.gpus.length, 0);
  return gpus ? text.gpus(gpus) : "";
}

function Chip({ execution: { rank, state } }: { execution: ExecutionView }) {
  const said = text.spoken(rank, words.job.states[state]);
  return (
    <span class={`rank-chip status ${STATES[state].tone}`} role="img" aria-label={said} title={said}>
      r{rank}
    </span>
  );
}
