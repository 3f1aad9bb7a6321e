// The list of jobs: all of them, live.
import { useComputed } from "@preact/signals";
import { useRef } from "preact/hooks";
import { useKeys } from "../../keys";
import { liveState, useLive } from "../../live";
import { Empty } from "../../parts/empty";
import { Icon } from "../../parts/icons";
import { Page } from "../../parts/page";
import { SkeletonRows } from "../../parts/skeleton";
import { LiveMark } from "../../parts/live-mark";
import { Table } from "../../parts/table";
import { choose, query } from "../../router";
import { jobs } from "../../store/jobs";
import { useSettled } from "../../store/order";
import { now } from "../../when";
import { words } from "../../words";
import { card, columns } from "./columns";
import { counted, filtersOf, ordered, PHASES } from "./filters";

export default function JobsPage() {
  useLive("job_rows");
  const filters = useComputed(() => filtersOf(query.value));
  const order = useComputed(() => query.value.get("sort") ?? "");
  const settled = useSettled(
    () => ordered(jobs.all.values(), filters.peek(), order.peek(), now.peek()),
    jobs.changed,
    () => [filters.value, order.value],
  );
  const found = useComputed(() => (jobs.changed.value, counted(jobs.all.values(), filters.value)));
  return (
    <Page title={words.jobs.title} fills>
      <Toolbar found={found.value} />
      {jobs.known.value || jobs.all.size ? (
        settled.names.value.length ? (
          <Table
            label={words.jobs.title}
            columns={columns}
            names={settled.names}
            at={(name) => jobs.at(name)}
            link={(name) => `/jobs/${name}`}
            card={card}
            order={order}
            sort={(chosen) => choose({ sort: chosen })}
            held={settled.held}
          />
        ) : (
          <Nothing />
        )
      ) : (
        <SkeletonRows />
      )}
      <footer class="page-foot">
        <LiveMark state={liveState.value.state} />
        <span>{words.jobs.shown(settled.names.value.length, jobs.all.size)}</span>
        {settled.waiting.value > 0 && (
          <button type="button" class="link-button" onClick={settled.settle}>
            {words.jobs.waiting(settled.waiting.value)} · {words.jobs.show}
          </button>
        )}
      </footer>
    </Page>
  );
}

type Found = ReturnType<typeof counted>;

function Toolbar({ found }: { found: Found }) {
  const search = useRef<HTMLInputElement>(null);
  useKeys([{ keys: "/", does: words.keys.search, run: () => search.current?.focus() }]);
  const { project, owner } = filtersOf(query.value);
  return (
    <div class="toolbar">
      <label class="search">
        <Icon name="search" />
        <input
          ref={search}
          type="search"
          aria-label={words.jobs.search}
          placeholder={words.jobs.searchHint}
          value={query.value.get("q") ?? ""}
          onInput={(event) => choose({ q: event.currentTarget.value })}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        />
        <kbd>/</kbd>
      </label>
      <Choice what={words.jobs.project} name="project" values={found.projects} value={project} />
      <Choice what={words.jobs.owner} name="owner" values={found.owners} value={owner} />
      <PhaseChips found={found} />
    </div>
  );
}

function Choice({ what, name, values, value }: { what: string; name: string; values: string[]; value: string }) {
  const all = value && !values.includes(value) ? [...values, value] : values;
  if (all.length < 2 && !value) return null;
  return (
    <select
      class={value ? "chosen" : ""}
      aria-label={what}
      value={value}
      onChange={(event) => choose({ [name]: event.currentTarget.value })}
    >
      <option value="">{words.jobs.any(what)}</option>
      {all.map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </select>
  );
}

function PhaseChips({ found }: { found: Found }) {
  const { phases } = filtersOf(query.value);
  const toggle = (phase: string) => {
    const next = phases.includes(phase) ? phases.filter((each) => each !== phase) : [...phases, phase];
    choose({ phase: next.join(",") });
  };
  return (
    <div class="chips" role="group" aria-label={words.jobs.phases}>
      <Chip text={words.jobs.all} number={found.all} pressed={!phases.length} press={() => choose({ phase: "" })} />
      {PHASES.map((phase) => {
        const number = found.phases.get(phase) ?? 0;
        if (!number && !phases.includes(phase)) return null;
        return (
          <Chip
            key={phase}
            text={words.phases[phase]}
            number={number}
            pressed={phases.includes(phase)}
            press={() => toggle(phase)}
          />
        );
      })}
    </div>
  );
}

function Chip(props: { text: string; number: number; pressed: boolean; press: () => void }) {
  return (
    <button type="button" class="chip" aria-pressed={props.pressed} onClick={props.press}>
      {props.text} <b>{props.number.toLocaleString("en-US")}</b>
    </button>
  );
}

function Nothing() {
  if (!jobs.all.size) {
    return <Empty title={words.jobs.none} text={words.jobs.noneText} command={words.jobs.noneCommand} />;
  }
  return (
    <Empty title={words.jobs.noMatch} text={words.jobs.noMatchText(jobs.all.size)}>
      <button type="button" class="button" onClick={() => choose({ q: "", phase: "", project: "", owner: "" })}>
        {words.jobs.clear}
      </button>
    </Empty>
  );
}
