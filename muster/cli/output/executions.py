"""The executions of an attempt as a table: one line each, or one for those that are alike where there are many."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from rich.text import Text

from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, listing, word
from muster.cli.output.units import ranks_text, size_text, span_text
from muster.domain.attachments.request import OpenedAttachment
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.view import AttemptView, ExecutionView

MOST_SINGLE = 8
"""Executions that have a line each; of more, those that are alike share one."""

URGENCY = (
    State.FAILED,
    State.LOST,
    State.WAITING,
    State.QUEUED,
    State.PLACED,
    State.PREPARING,
    State.STOPPING,
    State.STOPPED,
    State.CHECKED_IN,
    State.ARMED,
    State.RUNNING,
    State.SUCCEEDED,
)
"""States in the order in which somebody wants to hear of them."""

_COLUMNS = (
    Column("RANK", least=8),
    Column("ROLE", spare=3),
    Column("NODE", least=8),
    Column("STATE"),
    Column("PREPARED IN", right=True, spare=5),
    Column("WAITED", right=True, spare=6),
    Column("RAN", right=True, spare=1),
    Column("ADDRESS", spare=7),
    Column("PORTS", spare=8, least=12),
    Column("GPUS", spare=2, least=6),
    Column("DETAIL", least=16),
)


def executions_table(
    attempt: AttemptView, now: datetime, *, whole: bool = False, gpus: Mapping[str, int] | None = None
) -> TextTable:
    """The executions of an attempt, failures first where there are many; `whole`: each by itself.

    `gpus` has the number on its node for each GPU by its UUID, as far as it is known.
    """
    if whole or len(attempt.executions) <= MOST_SINGLE:
        groups: Iterable[Sequence[ExecutionView]] = ([each] for each in attempt.executions)
    else:
        groups = _alike(attempt.executions)
    return listing(_COLUMNS, (_row(group, attempt, now, whole=whole, gpus=gpus or {}) for group in groups))


def ports_text(execution: ExecutionView) -> str:
    """`http=20001, master=20002`."""
    return ", ".join(f"{lease.name}={lease.host_port}" for lease in execution.ports) or "-"


def gpus_text(gpus: Sequence[str], numbers: Mapping[str, int], *, whole: bool = False) -> str:
    """GPUs by their numbers on the node (`0-3`), by UUID with `whole`, or how many where no numbers are known."""
    if not gpus or whole:
        return ", ".join(gpus) or "-"
    if all(each in numbers for each in gpus):
        return ranks_text(numbers[each] for each in gpus)
    return str(len(gpus))


def _alike(executions: Sequence[ExecutionView]) -> Sequence[Sequence[ExecutionView]]:
    """Executions of one role in one state that ended alike, the most urgent first."""
    groups: dict[tuple[str, State, str], list[ExecutionView]] = {}
    for each in executions:
        groups.setdefault((each.role, each.state, re.sub(r"\d+", "0", _how(each))), []).append(each)
    return sorted(groups.values(), key=lambda group: (URGENCY.index(group[0].state), group[0].rank))


def _row(
    group: Sequence[ExecutionView], attempt: AttemptView, now: datetime, *, whole: bool, gpus: Mapping[str, int]
) -> Iterator[str | Text]:
    first = group[0]
    nodes = {each.node for each in group if each.node}
    details = {_how(each) for each in group}
    yield ranks_text(each.rank for each in group)
    yield first.role
    yield f"{len(nodes)} nodes" if len(nodes) > 1 else next(iter(nodes), None) or "-"
    yield word(first.state)
    yield _span_of(group, lambda each: (_entered(each, State.PLACED), _entered(each, State.CHECKED_IN)))
    yield _span_of(group, lambda each: (_entered(each, State.CHECKED_IN), attempt.checked_in_at))
    yield _span_of(group, lambda each: _ran(each, attempt, now))
    yield (first.address or "-") if len(group) == 1 else "-"
    yield ports_text(first) if len(group) == 1 else "-"
    if len(group) == 1:
        yield gpus_text(first.gpus, gpus, whole=whole)
    else:
        yield f"{len(first.gpus)} each" if first.gpus else "-"
    yield next(iter(details)) if len(details) == 1 else ""


def _span_of(
    group: Sequence[ExecutionView], ends: Callable[[ExecutionView], tuple[datetime | None, datetime | None]]
) -> str:
    """How long something took; of several the longest."""
    spans = [end - begin for begin, end in map(ends, group) if begin is not None and end is not None]
    if not spans:
        return "-"
    differ = span_text(min(spans)) != span_text(max(spans))
    return ("≤ " if differ else "") + span_text(max(spans))


def _entered(execution: ExecutionView, state: State) -> datetime | None:
    return next((each.at for each in execution.transitions if each.state is state), None)


def _ran(execution: ExecutionView, attempt: AttemptView, now: datetime) -> tuple[datetime | None, datetime | None]:
    """When user code began and ended.

    It begins with the release of the gang: of what ends at once one hears both together, that it runs and that it has
    ended.
    """
    runs = _entered(execution, State.RUNNING)
    ended = execution.transitions[-1].at if execution.exit is not None and execution.transitions else now
    return (None if runs is None else attempt.released_at or runs), ended


def _how(execution: ExecutionView) -> str:
    if execution.failure is not None:
        return execution.failure.message
    if execution.exit is not None:
        return f"exit code {execution.exit.code}"
    return execution.detail


def kept_shells_table(shells: Sequence[tuple[int, str, int, bool]]) -> TextTable:
    """One line a kept shell: its rank, its name, its process, and whether somebody is attached."""
    rows = ((str(rank), name, str(pid), "yes" if attached else "no") for rank, name, pid, attached in shells)
    return listing(("RANK", Column("NAME", least=10), "PID", "ATTACHED"), rows)


def attachments_table(opened: Sequence[OpenedAttachment], now: datetime) -> TextTable:
    """One line an attachment, the oldest first."""
    rows = (
        (
            each.attachment,
            f"{each.job_name} ({each.job})",
            str(each.rank),
            each.node,
            each.account,
            f"{each.kind} {each.about}".rstrip(),
            span_text(now - each.since),
            size_text(each.bytes_in),
            size_text(each.bytes_out),
        )
        for each in opened
    )
    return listing(
        (
            "ID",
            Column("JOB", least=10),
            "RANK",
            Column("NODE", spare=2),
            "ACCOUNT",
            Column("WHAT", least=12),
            "FOR",
            Column("IN", spare=1),
            Column("OUT", spare=1),
        ),
        rows,
    )
