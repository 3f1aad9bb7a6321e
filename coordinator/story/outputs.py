"""What people are told of the outputs of an attempt."""

from collections.abc import Iterator, Sequence

from coordinator.core.records import Execution
from coordinator.story.moves import listed_ranks
from muster.domain.data.outputs import OutputsStage
from muster.domain.event import JobEventKind
from muster.domain.quantity import counted, size_text

_NOT_STORED = frozenset({OutputsStage.ON_NODE, OutputsStage.LOST})
"""What people want to hear of; whose outputs nobody wants is nobody's loss."""


def outputs_events(left: Sequence[Execution]) -> Iterator[tuple[JobEventKind, str, Sequence[Execution]]]:
    """The kinds of events, with their texts and the executions that they are about."""
    stored = [each for each in left if each.outputs is not None and each.outputs.stage is OutputsStage.STORED]
    others = [each for each in left if each.outputs is not None and each.outputs.stage in _NOT_STORED]
    if stored:
        files = sum(each.outputs.files for each in stored if each.outputs is not None)
        size = sum(each.outputs.bytes for each in stored if each.outputs is not None)
        yield JobEventKind.OUTPUTS_STORED, f"outputs are stored: {counted(files, 'file')}, {size_text(size)}", stored
    if others:
        yield JobEventKind.OUTPUTS_LOST, f"outputs are not stored, of {_ranks(others)}: {_why(others[0])}", others


def _ranks(members: Sequence[Execution]) -> str:
    listed = listed_ranks(member.rank for member in members)
    return f"rank {listed}" if len(members) == 1 else f"ranks {listed}"


def _why(member: Execution) -> str:
    """Why they are not in the depot, and where they are."""
    outputs = member.outputs
    if outputs is None:
        return ""
    where = "they are lost" if outputs.stage is OutputsStage.LOST else f"they stay on {member.node}"
    return f"{outputs.why}; {where}"
