"""The logs of a job that somebody reads on in: attempt by attempt, and again whenever one of them has grown."""

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from coordinator.core.records import Execution
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.watching.members import complete_logs, members, newest_attempt
from muster.domain.ids import ExecutionId, JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsWish:
    """The logs that somebody wants to read."""

    job: JobId
    attempt: int = 0
    """0: the newest."""
    ranks: frozenset[int] = frozenset()
    """Empty: all."""
    follow: bool = False


class LogReading(Protocol):
    """Where the reading of one log stands."""

    at_end: bool
    """The log is complete, and was read to its end."""

    @property
    def execution(self) -> ExecutionId:
        """The execution whose log it is."""
        ...


ReadingT = TypeVar("ReadingT", bound=LogReading)


async def attempts_of(engine: Engine, wish: LogsWish) -> AsyncGenerator[int, None]:
    """The number of the attempt that is wanted.

    Who follows without saying which goes on with the next one when the job starts again.
    """
    number = wish.attempt or await _newest(engine, wish.job)
    while True:
        yield number
        number += 1
        if not wish.follow or wish.attempt or number > await _newest(engine, wish.job):
            return


async def rounds_of(
    engine: Engine, wish: LogsWish, number: int, begin: Callable[[Execution], ReadingT]
) -> AsyncGenerator[Sequence[ReadingT], None]:
    """The logs of an attempt that are to be read on in now: all at first, then with `follow` those that have grown.

    It ends when none of the logs can grow any more. `begin` makes the reading of one log.
    """
    found = await engine.query(
        lambda cluster, _: members(cluster, wish.job, number, wish.ranks), after=Freshness.COMMITTED
    )
    readings = {member.id: begin(member) for member in found}
    with engine.signals.listen(wish.job, *readings) as listener:
        fired: Collection[object] = readings
        while True:
            over = await engine.query(lambda cluster, _: complete_logs(cluster, readings), after=Freshness.COMMITTED)
            yield [readings[each] for each in readings if each in fired]
            if not wish.follow or all(each.at_end or each.execution in over for each in readings.values()):
                return
            fired = await listener.wait()
            if wish.job in fired:
                fired = readings


async def _newest(engine: Engine, job: JobId) -> int:
    return await engine.query(lambda cluster, _: newest_attempt(cluster, job), after=Freshness.COMMITTED)
