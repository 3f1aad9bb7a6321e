// All that the ranks of a job print.
import { useComputed, useSignal, type ReadonlySignal, type Signal } from "@preact/signals";
import { address } from "../../api/ask";
import { sentence } from "../../api/problem";
import type { JobView } from "../../api/types";
import { liveState } from "../../live";
import { Empty } from "../../parts/empty";
import { LiveMark } from "../../parts/live-mark";
import { LogView } from "../../parts/log-view";
import { SkeletonRows } from "../../parts/skeleton";
import { tell } from "../../parts/toast";
import { choose, query } from "../../router";
import { newest } from "../../store/job";
import { earlierLines, type Lines } from "../../store/logs";
import { words } from "../../words";
import { useLines } from "./lines";
import { LogSearch } from "./log-search";

const text = words.job.log;
const EARLIER = 100_000; // lines that are asked for, of all ranks together

export function Logs({ job }: { job: JobView }) {
  const lines = useLines(job.id);
  const follows = useSignal(true);
  const times = useSignal(true);
  const found = useSignal(-1);
  const rank = useComputed(() => query.value.get("rank") ?? "");
  const wanted = useComputed(() => (query.value.get("find") ?? "").toLowerCase());
  const shown = useComputed(() => {
    void lines.changed.value;
    const only = rank.value;
    return only ? lines.all.filter((line) => String(line.rank) === only) : lines.all.slice();
  });
  const size = newest(job)?.executions.length ?? 1;
  return (
    <>
      <div class="toolbar">
        <LogSearch shown={shown} wanted={wanted} found={found} follows={follows} />
        <RankChoice size={size} rank={rank} />
        <Switch text={text.follow} on={follows} />
        <Switch text={text.times} on={times} />
        <span class="apart" />
        <Earlier job={job.id} size={size} lines={lines} follows={follows} />
        <a class="button" download={`${job.id}.log`} href={address("/v1/jobs/{job}/logs", { in: { job: job.id } })}>
          {text.download}
        </a>
      </div>
      {shown.value.length ? (
        <LogView
          label={text.all}
          lines={shown}
          follows={follows}
          times={times.value}
          ranks={size > 1}
          wanted={wanted.value}
          found={found}
        />
      ) : lines.known.value ? (
        <Empty title={text.none} text={text.noneText} />
      ) : (
        <SkeletonRows />
      )}
      <footer class="page-foot">
        <LiveMark state={liveState.value.state} />
        <span>{text.shown(shown.value.length)}</span>
      </footer>
    </>
  );
}

interface EarlierProps {
  job: string;
  size: number;
  lines: Lines;
  follows: Signal<boolean>;
}

function Earlier({ job, size, lines, follows }: EarlierProps) {
  const busy = useSignal(false);
  const fetch = async () => {
    busy.value = true;
    follows.value = false;
    try {
      lines.takeEarlier(await earlierLines(job, Math.max(1, Math.floor(EARLIER / Math.max(1, size)))));
    } catch (error) {
      tell(sentence(error), "failed");
    } finally {
      busy.value = false;
    }
  };
  return (
    <button type="button" class="button" disabled={busy.value} onClick={() => void fetch()}>
      {text.earlier}
    </button>
  );
}

function RankChoice({ size, rank }: { size: number; rank: ReadonlySignal<string> }) {
  if (size < 2) return null;
  return (
    <select
      class={rank.value ? "chosen" : ""}
      aria-label={text.rankLabel}
      value={rank.value}
      onChange={(event) => choose({ rank: event.currentTarget.value })}
    >
      <option value="">{text.ranksAny}</option>
      {Array.from({ length: size }, (_, each) => (
        <option key={each} value={String(each)}>
          {text.rank(each)}
        </option>
      ))}
    </select>
  );
}

function Switch({ text: said, on }: { text: string; on: Signal<boolean> }) {
  return (
    <button type="button" class="chip" aria-pressed={on.value} onClick={() => (on.value = !on.value)}>
      {said}
    </button>
  );
}
