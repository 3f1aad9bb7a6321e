"""What would be done to a computer to make it a node: facts and wishes in, steps out. Nothing here does anything."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from muster.bootstrap.inspect.checks import Finding, Severity
from muster.bootstrap.inspect.facts import MachineFacts
from muster.bootstrap.request import CONFIG, MachineRequest, agent_config
from muster.domain.fleet.access import EnrolledNode
from muster.domain.fleet.node import NodeState, NodeView

UNIT = "muster-agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """The bundle goes there."""

    bundle: str
    size: int

    def __str__(self) -> str:
        return f"send {self.bundle} ({self.size / 2**20:.0f} MiB)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """The installer of the bundle runs."""

    version: str
    before: str | None

    def __str__(self) -> str:
        if self.before == self.version:
            return f"check that {self.version} is installed as it should be"
        instead = f" in place of {self.before}" if self.before else f", users and the unit {UNIT}"
        return f"install {self.version} into /opt/muster{instead}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure:
    """The agent's configuration is written."""

    text: str

    def __str__(self) -> str:
        return f"write {CONFIG}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """The node gets a join token of its own, and joins with it."""

    name: str
    labels: Mapping[str, str]
    again: bool = False
    """Whether it was sent away before, so that what it knows of the fleet counts no more."""

    def __str__(self) -> str:
        labels = ", ".join(f"{key}={value}" for key, value in sorted(self.labels.items()))
        return f"join{' anew' if self.again else ''} as {self.name}" + (f" with {labels}" if labels else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """The coordinator hears from the node."""

    name: str

    def __str__(self) -> str:
        return f"start {UNIT} and wait until {self.name} is ready"


Step: TypeAlias = Send | Install | Configure | Join | Await


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePlan:
    """What would be done."""

    name: str
    """The node's name."""
    findings: tuple[Finding, ...]
    steps: tuple[Step, ...]
    """None: all is as it should be."""

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """Why nothing will be done."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)

    @property
    def join(self) -> Join | None:
        """The step in which it joins; None: it has joined."""
        return next((step for step in self.steps if isinstance(step, Join)), None)

    @property
    def config(self) -> str | None:
        """The configuration that is to be written; None: it stays."""
        return next((step.text for step in self.steps if isinstance(step, Configure)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleToSend:
    """The bundle that would be sent."""

    name: str
    size: int
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the coordinator knows of a node's name."""

    view: NodeView | None = None
    enrolled: EnrolledNode | None = None


def plan_node(
    facts: MachineFacts,
    wish: MachineRequest,
    *,
    parcel: BundleToSend,
    coordinator: str,
    known: Known,
    findings: Sequence[Finding],
) -> MachinePlan:
    """The steps from a computer as it is to the node that is wished for."""
    name = wish.name or facts.hostname
    text = agent_config(wish, name=name, coordinator=coordinator)
    there = facts.muster
    steps: list[Step] = []
    if not _configured(facts, text):
        steps.append(Configure(text=text))
    if not _has_joined(facts, known):
        steps.append(Join(name=name, labels=dict(wish.labels), again=there.joined))
    running = known.view is not None and known.view.state is NodeState.READY and there.unit == "active"
    if steps or there.version != parcel.version or not running:
        send = Send(bundle=parcel.name, size=parcel.size)
        steps = [send, Install(version=parcel.version, before=there.version), *steps, Await(name=name)]
    return MachinePlan(name=name, findings=(*findings, *_membership(facts, wish, known)), steps=tuple(steps))


def plan_upgrade(facts: MachineFacts, name: str, *, parcel: BundleToSend, findings: Sequence[Finding]) -> MachinePlan:
    """The steps from a node to the same node with another version."""
    there = facts.muster
    if there.version is None or not there.joined or there.name is None:
        sentence, remedy = "is no node that was installed by a bundle", "`muster nodes add` makes it one"
        missing = Finding(id="muster", severity=Severity.ERROR, sentence=sentence, remedy=remedy)
        return MachinePlan(name=name, findings=(*findings, missing), steps=())
    if there.name != name:
        remedy = "say with -f FILE where each node is"
        other = Finding(id="name", severity=Severity.ERROR, sentence=f"is {there.name}, not {name}", remedy=remedy)
        return MachinePlan(name=name, findings=(*findings, other), steps=())
    steps: tuple[Step, ...] = ()
    if there.version != parcel.version or there.unit != "active":
        send = Send(bundle=parcel.name, size=parcel.size)
        steps = (send, Install(version=parcel.version, before=there.version), Await(name=there.name))
    return MachinePlan(name=there.name, findings=tuple(findings), steps=steps)


def _configured(facts: MachineFacts, text: str) -> bool:
    """Whether the configuration says this; the installer adds as which user jobs run."""
    there = facts.muster
    wanted = {text, f'{text}job-user = "{there.job_user}"\n'}
    return there.config in {hashlib.sha256(each.encode()).hexdigest() for each in wanted}


def _has_joined(facts: MachineFacts, known: Known) -> bool:
    return facts.muster.joined and known.enrolled is not None and known.enrolled.revoked_at is None


def _membership(facts: MachineFacts, wish: MachineRequest, known: Known) -> tuple[Finding, ...]:
    there = facts.muster
    name = wish.name or facts.hostname
    if there.joined and there.name is not None and there.name != name:
        sentence = f"has joined as {there.name}, not as {name}"
        remedy = f"call it {there.name}, or `muster nodes remove {there.name} --ssh {wish.target} --purge` first"
        return (Finding(id="name", severity=Severity.ERROR, sentence=sentence, remedy=remedy),)
    if there.joined and known.enrolled is None:
        remedy = f"`muster nodes remove {name} --ssh {wish.target} --purge` there, asking its coordinator"
        sentence = "has joined another fleet, or its coordinator has forgotten it"
        return (Finding(id="fleet", severity=Severity.ERROR, sentence=sentence, remedy=remedy),)
    if not _has_joined(facts, known) or known.enrolled is None:
        return ()
    other = {key: value for key, value in wish.labels.items() if known.enrolled.labels.get(key) != value}
    if not other:
        return ()
    words = ", ".join(f"{key}={value}" for key, value in sorted(other.items()))
    remedy = f"`muster nodes label {name} {' '.join(f'{key}={value}' for key, value in sorted(other.items()))}`"
    sentence = f"has joined without {words}"
    return (Finding(id="labels", severity=Severity.WARNING, sentence=sentence, remedy=remedy),)
