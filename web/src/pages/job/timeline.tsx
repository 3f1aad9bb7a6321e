// How the gang of the newest attempt came together: a bar for each rank, and who came last.
import type { JobView } from "../../api/types";
import { Card } from "../../parts/card";
import { newest } from "../../store/job";
import { now, shortSpan } from "../../when";
import { words } from "../../words";
import { barsOf, lastOf, rangeOf, STEPS, type Bar } from "./bars";

const text = words.job.timeline;
const MOST_BARS = 32;

export function Timeline({ job }: { job: JobView }) {
  const attempt = newest(job);
  const isUnderWay = job.phase === "preparing";
  const bars = attempt ? barsOf(attempt, isUnderWay ? now.value : Date.now()) : [];
  const legend = (
    <span class="legend">
      {STEPS.map((step) => (
        <span key={step} class={`key ${step}`}>
          {text[step]}
        </span>
      ))}
    </span>
  );
  return (
    <Card title={text.title} aside={legend}>
      {bars.length ? (
        <Bars bars={bars} />
      ) : (
        <p class="second card-text">{attempt?.executions_dropped ? text.dropped : text.none}</p>
      )}
    </Card>
  );
}

function Bars({ bars }: { bars: Bar[] }) {
  const { begin, end } = rangeOf(bars);
  const last = lastOf(bars);
  const isCut = bars.length > MOST_BARS;
  const shown = isCut ? [...bars].sort((a, b) => b.checkedIn - a.checkedIn).slice(0, MOST_BARS) : bars;
  return (
    <div class="timeline">
      {shown.map((bar) => (
        <TimeRow key={bar.rank} bar={bar} begin={begin} end={end} />
      ))}
      <div class="time-axis" aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((part) => (
          <span key={part}>{onAxis(part * (end - begin), end - begin)}</span>
        ))}
      </div>
      <p class="second">
        {isCut && `${text.some(shown.length, bars.length)} `}
        {bars.length > 1 && Number.isFinite(last.checkedIn) && text.last(last.rank, last.node)}
      </p>
    </div>
  );
}

/** A time of an axis, as exact as the axis is short. */
function onAxis(at: number, all: number): string {
  return all < 2000 ? `${Math.round(at)} ms` : shortSpan(at / 1000);
}

function TimeRow({ bar, begin, end }: { bar: Bar; begin: number; end: number }) {
  const share = (time: number) => (100 * (Math.min(time, end) - begin)) / (end - begin);
  const steps = bar.steps.map(({ step, from, to }) => `${text[step]} ${shortSpan((to - from) / 1000)}`);
  const said = text.spoken(bar.rank, bar.node, steps.join(", "));
  return (
    <div class="time-row" role="img" aria-label={said} title={said}>
      <span class="time-rank">{bar.rank}</span>
      <span class="time-node">{bar.node}</span>
      <span class="track">
        {bar.steps.map(({ step, from, to }) => (
          <i key={step} class={step} style={{ left: `${share(from)}%`, width: `${share(to) - share(from)}%` }} />
        ))}
      </span>
    </div>
  );
}
