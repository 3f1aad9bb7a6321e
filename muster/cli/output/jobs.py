"""Jobs as tables and sentences."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from rich.console import Group, RenderableType
from rich.text import Text

from muster.cli.output.executions import executions_table, gpus_text, ports_text
from muster.cli.output.job_rows import COLUMNS, MORE_COLUMNS, PHASE, job_row
from muster.cli.output.job_sentences import verdict_words
from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, facts, joined, listing, sentences, shown, word
from muster.cli.output.units import cpus_text, in_local_time, ranks_text, size_text, span_text, time_text
from muster.domain.data.code import git_text
from muster.domain.data.job_input import JobInput, without_query
from muster.domain.jobs.explanation import Explanation, StartEstimate
from muster.domain.jobs.failure import Failure
from muster.domain.jobs.image import FoundImage
from muster.domain.jobs.job import JobSpec, Resources, Role
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.view import AttemptView, JobView
from muster.domain.quantity import counted
from muster.domain.visible_text import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTime:
    """How long an attempt was, or is, in one phase."""

    name: str
    span: timedelta
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name} {span_text(self.span)}" + (f" ({self.note})" if self.note else "")


def jobs_table(jobs: Sequence[JobView], now: datetime, *, wide: bool = False) -> TextTable:
    """One line a job."""
    columns = (*COLUMNS, *MORE_COLUMNS) if wide else COLUMNS
    return listing(columns, (_coloured(job, job_row(job, now, wide=wide)) for job in jobs))


def job_details(
    job: JobView,
    now: datetime,
    only: int | None = None,
    *,
    whole: bool = False,
    gpus: Mapping[str, int] | None = None,
) -> Group:
    """All that is known of one job, or of it and `only` this attempt; `whole`: each execution by itself.

    `gpus` has the number on its node for each GPU by its UUID, as far as it is known.
    """
    parts: list[RenderableType] = [
        facts(
            (
                ("job", f"{job.spec.name} ({job.id})"),
                ("project", job.spec.project),
                ("owner", job.owner),
                ("labels", ", ".join(f"{name}={value}" for name, value in sorted(job.spec.labels.items()))),
                ("phase", word(job.phase)),
                ("", visible(in_local_time(job.summary, now))),
                ("executions", _roles_text(job.spec)),
                ("images", "\n".join(map(_image_text, job.images))),
                ("presets", "\n".join(map(str, job.presets))),
                ("network", str(job.spec.network)),
                ("submitted", time_text(job.submitted_at)),
                ("started", time_text(job.started_at)),
                ("ended", time_text(job.ended_at)),
            ),
        ),
    ]
    for attempt in job.attempts:
        if only in {None, attempt.number}:
            parts += [shown(""), *_attempt_details(job, attempt, now, whole=whole, gpus=gpus)]
    parts += [shown(line) for line in _left_out(job, only)]
    if job.failure is not None:
        parts += [shown(""), failure_block(job.failure)]
    return Group(*parts)


def roster_table(attempt: AttemptView) -> TextTable:
    """A table of members, and of where peers reach them."""
    return listing(
        ("RANK", Column("ROLE", spare=1), Column("NODE", least=10), "ADDRESS", Column("PORTS", least=14), "GPUS"),
        (
            (
                str(execution.rank),
                execution.role,
                execution.node or "-",
                execution.address or "-",
                ports_text(execution),
                gpus_text(execution.gpus, {}),
            )
            for execution in attempt.executions
        ),
    )


def attempt_times(job: JobView, attempt: AttemptView, now: datetime) -> tuple[PhaseTime, ...]:
    """How long the attempt queued, prepared, armed and ran; up to `now` if it has not ended."""
    before = [other.ended_at for other in job.attempts if other.number == attempt.number - 1]
    marks = [
        ("queued", before[0] if before and before[0] else job.submitted_at),
        ("preparing", attempt.placed_at),
        ("arming", attempt.checked_in_at),
        # Of what ends at once one hears both together: that it runs, and that it has ended.
        ("starting" if attempt.started_at is None else "running", attempt.released_at or attempt.started_at),
        ("", attempt.ended_at or (job.ended_at if attempt == job.attempts[-1] else None) or now),
    ]
    known = [(name, at) for name, at in marks if at is not None]
    return tuple(
        PhaseTime(name=name, span=end - start, note=_last_in(attempt) if name == "preparing" else "")
        for (name, start), (_, end) in pairwise(known)
    )


def failure_block(failure: Failure) -> Group:
    """The culprit and the last lines that it printed."""
    return Group(shown(f"first failure  {failure}", "red"), *_last_lines(failure))


def _last_lines(failure: Failure) -> list[Text]:
    return [shown(f"  | {line.expandtabs()}") for line in failure.log_tail]


def explanation(why: Explanation, now: datetime) -> Group:
    """Why a job is where it is."""
    parts: list[RenderableType] = [shown(in_local_time(why.summary, now))]
    if why.queue_position:
        parts.append(shown(f"place in the queue: {why.queue_position}"))
    parts += map(shown, _estimate_texts(why.estimate))
    if why.pools:
        rows = ((refusal.pool, refusal.reason) for refusal in why.pools)
        parts += [shown(""), sentences(("POOL", "WHY NOT THERE"), rows)]
    if why.changes:
        rows = ((change.change, change.why) for change in why.changes)
        parts += [shown(""), sentences(("WOULD HELP NOW", "AS"), rows)]
    if why.refusals:
        rows = ((refusal.node, refusal.reason) for refusal in why.refusals)
        parts += [shown(""), sentences(("NODE", "LACKS"), rows)]
    if why.awaited:
        waited_for = ((str(who.rank), who.node or "-", word(who.state), who.detail) for who in why.awaited)
        parts += [shown(""), sentences(("RANK", "NODE", "STATE", "DOING"), waited_for)]
    if why.failure is not None and str(why.failure) not in why.summary:
        parts += [shown(""), failure_block(why.failure)]
    elif why.failure is not None:
        parts += _last_lines(why.failure)
    return Group(*parts)


def _estimate_texts(estimate: StartEstimate) -> Iterator[str]:
    if estimate.about is not None:
        yield f"starts about {time_text(estimate.about)}, if all takes as long as expected"
    if estimate.latest is not None:
        yield f"starts at the latest {time_text(estimate.latest)}, by the run limits of what has its seats"


def verdict(job: JobView) -> Text:
    """How an ended job ended, in one line."""
    before, _, after = verdict_words(job)
    return joined(before, word(job.phase), after)


def _coloured(job: JobView, row: Sequence[str]) -> Sequence[str | Text]:
    return [*row[:PHASE], word(job.phase), *row[PHASE + 1 :]]


def _image_text(found: FoundImage) -> str:
    what = found.digest or f"from no registry; the first node has it as {found.id}"
    return visible(f"{found.image}  {what}")


def _roles_text(spec: JobSpec) -> str:
    return "\n".join(f"{role.count} x {role.name}: {', '.join(_needs(role))}" for role in spec.roles)


def _needs(role: Role) -> Iterator[str]:
    needs = role.resources
    yield f"{cpus_text(needs.cpu_millis)} CPU"
    if needs.memory is not None:
        yield f"{size_text(needs.memory)} memory"
    if needs.disk is not None:
        yield f"{size_text(needs.disk)} disk"
    if needs.gpus:
        yield f"{needs.gpus} x {_gpu_kind(needs)}" + (f" {needs.gpu_model}" if needs.gpu_model else "")
    for volume in role.volumes:
        amount = size_text(volume.size or volume.tmpfs or 0)
        kept = " that stays on the node" if volume.is_kept else ""
        yield f"volume {volume.name} of {amount}" + (" in memory" if volume.tmpfs else kept)
    for each in role.inputs:
        yield f"input {each.name} from {visible(_origin(each))}"
    if role.code is not None and role.code.git is not None:
        yield f"code {visible(git_text(role.code.git))}"
    yield visible(role.image or "process")
    if role.command:
        yield visible(shlex.join(role.command))


def _origin(each: JobInput) -> str:
    urls = [without_query(one.url) for one in each.singly]
    more = f" and {counted(len(urls) - 1, 'other URL')}" if urls[1:] else ""
    return f"{urls[0]}{more}" if urls else each.source


def _gpu_kind(needs: Resources) -> str:
    """What it gets so many of: `GPU`, `0.5 GPU`, `20 GiB of a GPU`, `MIG 1g.10gb`."""
    if needs.gpu_memory is not None:
        return f"{size_text(needs.gpu_memory)} of a GPU"
    if needs.gpu_portion is not None:
        return f"{cpus_text(needs.gpu_portion)} GPU"
    return "GPU" if needs.mig is None else f"MIG {needs.mig}"


def _attempt_details(
    job: JobView, attempt: AttemptView, now: datetime, *, whole: bool, gpus: Mapping[str, int] | None
) -> Iterator[RenderableType]:
    times = " · ".join(map(str, attempt_times(job, attempt, now)))
    yield joined(shown(f"attempt {attempt.number}", "bold"), f"  {times}")
    if attempt.saved_at is not None:
        yield shown(f"  last checkpoint {time_text(attempt.saved_at)}")
    if attempt.failure is not None and attempt.failure != job.failure:
        yield failure_block(attempt.failure)
    if attempt.executions:
        yield executions_table(attempt, now, whole=whole, gpus=gpus)


def _left_out(job: JobView, only: int | None) -> Iterator[str]:
    """Sentences on attempts whose executions are not told: which, why, and how to ask for them."""
    without = [each for each in job.attempts if not each.executions and only in {None, each.number}]
    dropped = [each.number for each in without if each.executions_dropped]
    older = [each.number for each in without if not each.executions_dropped]
    if without:
        yield ""
    if older and only is None:
        yield f"{_attempts_text(older)}: executions are not listed; ask with `muster show {job.id} --attempt N`"
    if dropped:
        yield f"{_attempts_text(dropped)}: executions were dropped, as the job has very many; times and logs are kept"


def _attempts_text(numbers: Sequence[int]) -> str:
    return f"attempt{'s' if len(numbers) > 1 else ''} {ranks_text(numbers)}"


def _last_in(attempt: AttemptView) -> str:
    """A sentence on the rank that checked in last, said only where the others waited for a noticeable time."""
    arrivals = sorted(
        (transition.at, execution.rank)
        for execution in attempt.executions
        for transition in execution.transitions
        if transition.state is State.CHECKED_IN
    )
    if attempt.checked_in_at is None or len(arrivals) < 2:  # noqa: PLR2004 - nobody waits for oneself
        return ""
    waited = arrivals[-1][0] - arrivals[0][0]
    late = ranks_text(rank for at, rank in arrivals if at == arrivals[-1][0])
    return f"the first waited {span_text(waited)} for rank {late}" if waited > timedelta(seconds=0.5) else ""
