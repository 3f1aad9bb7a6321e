"""Carries out plans on many computers at once, and notes how each ended, whatever happens."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from muster.bootstrap.inspect.checks import Finding, Severity
from muster.bootstrap.inspect.inspection import Inspected, for_each
from muster.bootstrap.installation.install import Installation, InstallationError, InstallOrder
from muster.bootstrap.installation.outcome import SUCCESSES, Outcome, Status
from muster.bootstrap.installation.plan import MachinePlan
from muster.bootstrap.installation.registry import NodeRegistry
from muster.domain.fleet.node import NodeView
from muster.domain.quantity import counted

TellOf = Callable[[str, str], None]
"""Hears of a computer what is being done there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A computer with its plan; None: it could not be looked at."""

    seen: Inspected
    plan: MachinePlan | None

    @property
    def host(self) -> str:
        """The host as it was named."""
        return str(self.seen.wish.target)

    @property
    def node(self) -> str:
        """The name of the node."""
        return self.plan.name if self.plan is not None else self.seen.name

    @property
    def notable(self) -> tuple[Finding, ...]:
        """What is not as it should be."""
        findings = self.plan.findings if self.plan is not None else self.seen.findings
        return tuple(finding for finding in findings if finding.severity is not Severity.OK)


@dataclass(kw_only=True)
class Work:
    """One run over many computers; `outcomes` has those that have ended, also when it is interrupted."""

    registry: NodeRegistry
    bundle: Path
    version: str
    success: Status
    tell: TellOf
    stop_at_failure: bool = False
    """Whether nothing new is begun once something has failed."""
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    async def run(self, candidates: Sequence[Candidate], parallel: int) -> tuple[Outcome, ...]:
        """How each ended, in the same order."""
        await for_each(candidates, parallel, self._one)
        return self.ended(candidates)

    def ended(self, candidates: Sequence[Candidate]) -> tuple[Outcome, ...]:
        """How each ended; those of which nothing is known were not begun."""
        return tuple(
            self.outcomes.get(each.host) or describe(each, Status.INTERRUPTED, "was not begun") for each in candidates
        )

    async def _one(self, candidate: Candidate) -> None:
        began = asyncio.get_running_loop().time()
        outcome = await self._carry_out(candidate, lambda: asyncio.get_running_loop().time() - began)
        self.outcomes[candidate.host] = outcome
        self.tell(candidate.host, outcome.status + (f": {outcome.message}" if outcome.message else ""))

    async def _carry_out(self, candidate: Candidate, elapsed: Callable[[], float]) -> Outcome:
        if (settled := untouched(candidate)) is not None:
            return settled
        if self.stop_at_failure and any(each.status not in SUCCESSES for each in self.outcomes.values()):
            return describe(candidate, Status.SKIPPED, "another one failed before")
        installation = self._installation(candidate)
        try:
            view = await installation.run()
        except InstallationError as error:
            return describe(candidate, Status.FAILED, str(error), seconds=elapsed(), left=error.left)
        except asyncio.CancelledError:
            done = describe(candidate, Status.INTERRUPTED, seconds=elapsed(), left=installation.left)
            self.outcomes[candidate.host] = done
            raise
        return describe(candidate, self.success, _said(view), seconds=elapsed())

    def _installation(self, candidate: Candidate) -> Installation:
        seen, plan = candidate.seen, candidate.plan
        assert seen.shell is not None, "an untouched one has ended before"
        assert seen.facts is not None
        assert plan is not None
        order = InstallOrder(
            shell=seen.shell, bundle=self.bundle, version=self.version, plan=plan, before=seen.facts.muster
        )
        return Installation(order, self.registry, lambda doing: self.tell(candidate.host, doing))


def untouched(candidate: Candidate) -> Outcome | None:
    """How it ends where nothing is to be done or nothing may be; None: there is work."""
    plan = candidate.plan
    if plan is None:
        return describe(candidate, Status.REFUSED, candidate.seen.problem)
    if plan.blockers:
        return describe(candidate, Status.REFUSED, "; ".join(finding.sentence for finding in plan.blockers))
    return None if plan.steps else describe(candidate, Status.UNCHANGED)


def describe(
    candidate: Candidate,
    status: Status,
    message: str = "",
    *,
    seconds: float = 0.0,
    left: tuple[str, ...] = (),
) -> Outcome:
    """How it ended with one of them."""
    return Outcome(
        host=candidate.host,
        node=candidate.node,
        status=status,
        message=message,
        seconds=round(seconds, 1),
        left=left,
        findings=candidate.notable,
        steps=() if candidate.plan is None else tuple(map(str, candidate.plan.steps)),
    )


def _said(view: NodeView) -> str:
    count = len(view.executions)
    return f"{counted(count, 'execution')} went on" if count else ""
