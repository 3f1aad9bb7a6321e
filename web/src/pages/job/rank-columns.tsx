// The columns of the table of ranks, and a rank where the window is narrow.
import type { ExecutionView } from "../../api/types";
import { Ago } from "../../parts/span";
import { ExecutionState } from "../../parts/state";
import type { Column } from "../../parts/table";
import { words } from "../../words";

const titles = words.job.columns;

export const columns: readonly Column<ExecutionView>[] = [
  { key: "rank", title: titles.rank, width: "40px", end: true, cell: (each) => each.rank },
  { key: "state", title: titles.state, width: "112px", cell: (each) => <ExecutionState state={each.state} /> },
  { key: "role", title: titles.role, width: "minmax(64px, 0.6fr)", cell: (each) => each.role },
  { key: "node", title: titles.node, width: "minmax(96px, 1fr)", cell: (each) => each.node ?? words.none },
  { key: "gpus", title: titles.gpus, width: "40px", end: true, cell: (each) => each.gpus.length || words.none },
  {
    key: "address",
    title: titles.address,
    width: "minmax(96px, 0.8fr)",
    from: 1120,
    cell: (each) => each.address ?? words.none,
  },
  { key: "ports", title: titles.ports, width: "minmax(96px, 1fr)", from: 1280, cell: ports },
  { key: "since", title: titles.since, width: "76px", end: true, cell: (each) => <Since execution={each} /> },
  { key: "exit", title: titles.exit, width: "88px", cell: exit },
  {
    key: "detail",
    title: titles.detail,
    width: "minmax(120px, 2fr)",
    cell: (each) => <span class="second">{told(each)}</span>,
  },
];

export function card(each: ExecutionView) {
  return (
    <>
      <div class="card-line">
        <span>
          {titles.rank} {each.rank} · {each.node ?? words.none}
        </span>
        <ExecutionState state={each.state} />
      </div>
      <div class="card-line second">
        <span>{[each.role, each.address, exit(each)].filter(Boolean).join(" · ")}</span>
      </div>
      <div class="card-line second">
        <span>{told(each)}</span>
      </div>
    </>
  );
}

function Since({ execution }: { execution: ExecutionView }) {
  const last = execution.transitions.at(-1);
  return last ? <Ago time={Date.parse(last.at)} /> : <>{words.none}</>;
}

function ports(execution: ExecutionView): string {
  return execution.ports.map((port) => `${port.name} ${port.host_port}`).join(", ") || words.none;
}

function exit(execution: ExecutionView): string {
  if (!execution.exit) return "";
  return execution.exit.out_of_memory ? words.job.outOfMemory : words.job.exitCode(execution.exit.code);
}

function told(execution: ExecutionView): string {
  return execution.failure?.message ?? execution.detail;
}
