"""What the fence must do and must not, by when faults and user code surely were there (`docs/fencing.md`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.domain.gangs.fence import LEASE
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.view import AttemptView, ExecutionView, JobView
from tests.e2e.chaos.faults import BLINK, COORDINATOR, DEAD, Kind, Spell
from tests.e2e.chaos.user_code import Deeds

RECOVERED_WITHIN = 15.0
"""Seconds after which a node whose link was mended, or whose agent was started again, is as good as any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One attempt, what its workers did, and what was broken in that run of chaos."""

    view: JobView
    attempt: AttemptView
    deeds: Mapping[int, Deeds]
    """Deeds by rank."""
    spells: Sequence[Spell]

    @property
    def keeps(self) -> bool:
        """Whether it may go on without the coordinator."""
        return self.view.spec.on_disconnect is OnDisconnect.KEEP

    @property
    def nodes(self) -> set[str]:
        """Where it ran."""
        return {execution.node for execution in self.attempt.executions if execution.node is not None}

    def overruns(self) -> Iterator[str]:
        """Workers that went on longer after their last contact than it takes to be lost, with nobody to permit it."""
        limit = self.view.spec.timeouts.lost_after.total_seconds()
        for execution in self.attempt.executions:
            known = self.deeds[execution.rank]
            for spell in self._cutting_off(execution):
                if known.starts and known.first_at < spell.began and spell.ended > spell.began + limit < known.last_at:
                    late = known.last_at - spell.began
                    yield f"rank {execution.rank} on {execution.node} ran for {late:.0f} s after: {spell.fault}"

    def went_through(self) -> Iterator[Spell]:
        """Long absences of nothing but the coordinator that began while all of it ran well."""
        for spell in self.spells:
            long = spell.ended - spell.began > LEASE.total_seconds()
            if spell.fault.place == COORDINATOR and long and self.keeps and self._was_well(spell):
                yield spell

    def needlessly_stopped(self) -> Iterator[str]:
        """Workers that were given up because the coordinator was away."""
        for spell in self.went_through():
            for execution in self.attempt.executions:
                if execution.state is State.LOST or _cut_off(execution):
                    yield f"rank {execution.rank} on {execution.node} was given up, for nothing but: {spell.fault}"

    def _cutting_off(self, execution: ExecutionView) -> Iterator[Spell]:
        """Absences through which its node got no word that lets it go on."""
        for spell in self.spells:
            silent = spell.fault.kind in DEAD or spell.fault.kind in {Kind.AGENT, Kind.COORDINATOR}
            here = spell.fault.place == execution.node and len(self.nodes) > 1
            anywhere = spell.fault.place in {execution.node, COORDINATOR} and not self.keeps
            if silent and (here or anywhere):
                yield spell

    def _was_well(self, outage: Spell) -> bool:
        """Whether all of it ran when an outage began, none of it ended badly, and no node had troubles of its own."""
        known = [self.deeds[execution.rank] for execution in self.attempt.executions]
        ran = all(each.starts and each.first_at < outage.began for each in known)
        lived = all(each.code == 0 or each.last_at > outage.began for each in known)
        well = all(each.code in {None, 0} for each in known)
        over = max(each.last_at for each in known)
        troubled = any(
            spell.overlaps(outage.began - RECOVERED_WITHIN, max(over, outage.ended))
            for spell in self.spells
            if spell.fault.place in self.nodes and not _blink(spell)
        )
        return ran and lived and well and over > outage.began and not troubled


def _blink(spell: Spell) -> bool:
    """Whether a node does as if nothing had been."""
    short = spell.ended - spell.began <= BLINK + 1
    return short and spell.fault.kind in {Kind.AGENT, Kind.LAUNCHER}


def _cut_off(execution: ExecutionView) -> bool:
    return execution.failure is not None and execution.failure.kind is FailureKind.NODE_LOST
