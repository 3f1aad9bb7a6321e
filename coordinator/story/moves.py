"""Notes of a turn in the order in which they are told, with alike transitions of one attempt put together.

A gang of thousands so costs a few lines and events in each turn, and not one for each of its ranks.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from coordinator.core.causes import EventCause
from coordinator.core.notes import Changed, Dropped, Note, Noticed, Offered, OutputsSettled, Transitioned, WentUnused
from coordinator.core.records import Execution
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.lifecycle import State

RANGES_TOLD, NODES_TOLD = 20, 8
"""Ranges of ranks and names of nodes that are listed; of more it is told how many there are."""
ENDS_TOLD = 20
"""Different ends of executions of one attempt that one turn tells apart; further ones are told together."""


@dataclass(slots=True, kw_only=True)
class CommonMove:
    """The same transition of executions of one attempt, in one turn."""

    job: JobId
    attempt: int
    before: State
    after: State
    end: str
    """How they ended, where they did."""
    members: list[Execution] = field(default_factory=list)
    cause: EventCause
    """The cause of the last one."""

    @property
    def attempt_id(self) -> AttemptId:
        """Names the attempt."""
        return AttemptId(self.job, self.attempt)

    @property
    def ranks(self) -> str:
        """The ranks, as `0-3,7`."""
        return listed_ranks(member.rank for member in self.members)

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """The nodes, in the order of ranks; none before placement."""
        return nodes_of(sorted(self.members, key=attrgetter("rank")))


Told = CommonMove | Changed | Dropped | Offered | Noticed | WentUnused | OutputsSettled
"""Something to tell."""


def told(notes: Sequence[Note]) -> list[Told]:
    """What there is to tell, in the order in which it began."""
    found: list[Told] = []
    moves: dict[tuple[object, ...], CommonMove] = {}
    ends: Counter[tuple[object, ...]] = Counter()
    for note in notes:
        if not isinstance(note, Transitioned):
            found.append(note)
            continue
        before, after, cause = note
        plain = after.state is State.SUCCEEDED or (after.failure is None and after.exit is None)
        end = "" if plain else _end(after)
        key = (after.job, after.attempt, before.state, after.state, end)
        move = moves.get(key)
        if move is None:
            ends[key[:-1]] += 1
            if ends[key[:-1]] > ENDS_TOLD:
                key = (*key[:-1], end := "in other ways")
                move = moves.get(key)
        if move is None:
            move = moves[key] = CommonMove(
                job=after.job, attempt=after.attempt, before=before.state, after=after.state, end=end, cause=cause
            )
            found.append(move)
        move.members.append(after)
        move.cause = cause
    return found


def _end(execution: Execution) -> str:
    """How an execution ended, as far as it is known."""
    if execution.failure is not None:
        return execution.failure.message
    assert execution.exit is not None
    return str(execution.exit)


def nodes_of(members: Iterable[Execution]) -> tuple[NodeId, ...]:
    """The nodes of executions, each once."""
    return tuple(dict.fromkeys(member.node for member in members if member.node is not None))


def listed_nodes(nodes: Sequence[NodeId]) -> str:
    """Names of nodes, as `a,b,c`; of very many the first ones and how many there are."""
    listed = ",".join(nodes[:NODES_TOLD])
    return listed if len(nodes) <= NODES_TOLD else f"{listed},… ({len(nodes)} nodes)"


def listed_ranks(ranks: Iterable[int]) -> str:
    """Ranks, as `0-3,7`; of very many ranges the first ones and how many ranks there are."""
    in_order = sorted(ranks)
    ranges = list(_ranges(in_order))
    listed = ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges[:RANGES_TOLD])
    return listed if len(ranges) <= RANGES_TOLD else f"{listed},… ({len(in_order)} ranks)"


def _ranges(ranks: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = ranks[0]
    for rank in ranks[1:]:
        if rank != last + 1:
            yield first, last
            first = rank
        last = rank
    yield first, last
