"""Operations on quotas: what departments and projects may have, what they hold, and who waits."""

from collections.abc import Sequence
from itertools import chain

from coordinator.completion import completed
from coordinator.core.answers import QuotasSet, Refused
from coordinator.core.events import QuotasChanged
from coordinator.core.records import Job
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.causes import error_of
from coordinator.service.operations import Operations
from coordinator.service.pages import page_start
from coordinator.trust.accounts import project_name
from coordinator.trust.caller import Caller
from coordinator.trust.registry import Registry
from coordinator.views.quotas import queue_page, unit_views
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.access import Access
from muster.domain.fleet.quota import UnitChange
from muster.domain.fleet.quota_plan import told
from muster.domain.fleet.standing_view import QueuePage, UnitStandingView

QUEUE_PAGE = 1000
"""Most queued jobs of one page."""
TOLD_OF_CHANGES = 20
"""Most lines about one change in the audit log."""


class QuotaOperations:
    """What callers may do with quotas."""

    def __init__(self, operations: Operations, engine: Engine, registry: Registry) -> None:
        self._operations = operations
        self._engine = engine
        self._registry = registry

    async def list(self, caller: Caller) -> Sequence[UnitStandingView]:
        """Projects that the caller may look at and their departments, with what they may have and hold, by name."""
        async with self._operations.begin(caller, "quotas.list"):
            return await self._engine.query(
                lambda cluster, _: unit_views(cluster, lambda project: caller.may(Access.VIEWER, project)),
                after=Freshness.COMMITTED,
            )

    async def set(self, caller: Caller, changes: Sequence[UnitChange]) -> Sequence[str]:
        """Make all of these changes or none; warnings about what cannot be kept of them, a sentence each.

        Raises ConflictError where somebody else has changed one of the units since the caller looked.
        """
        names = ", ".join(change.name for change in changes)
        async with self._operations.begin(caller, "quotas.set", names) as operation:
            for change in changes:
                _check(change)
            answer = await completed(self._engine.apply(QuotasChanged(changes=tuple(changes), cause=operation.cause)))
            if isinstance(answer, Refused):
                raise error_of(answer)
            assert isinstance(answer, QuotasSet)
            lines = list(chain.from_iterable(map(told, changes)))
            more = f"; {len(lines) - TOLD_OF_CHANGES} more" if len(lines) > TOLD_OF_CHANGES else ""
            entry = operation.done("; ".join(lines[:TOLD_OF_CHANGES]) + more)
            await completed(self._registry.note((entry,)))
            return answer.warnings

    async def queue(self, caller: Caller, *, project: str = "", pool: str = "", page: str = "") -> QueuePage:
        """Queued jobs in the order in which they are tried; of projects that the caller may not look at no names."""
        async with self._operations.begin(caller, "queue.list"):
            first = page_start(page) or 1

            def wanted(job: Job) -> bool:
                return not project or (job.spec.project == project and caller.may(Access.VIEWER, project))

            return await self._engine.query(
                lambda cluster, now: queue_page(
                    cluster,
                    now,
                    lambda name: caller.may(Access.VIEWER, name),
                    lambda job: wanted(job) and (not pool or cluster.unit_load.pool_of(job) == pool),
                    first,
                    QUEUE_PAGE,
                ),
                after=Freshness.COMMITTED,
            )


def _check(change: UnitChange) -> None:
    """Raise InvalidJobError for terms that mean nothing, and for a name that cannot be one."""
    if change.after is None:
        return
    if change.before is None:
        project_name(change.after.name)
    for fault in change.after.terms.faults():
        raise InvalidJobError(f"{change.after.name}: {fault}")
