"""What the one who caused an event is told, once the step is durable."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from coordinator.core.records import Job
from muster.domain.fleet.access import Project
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.window import Window
from muster.domain.jobs.explanation import NodeRefusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The job as it stands after the event."""

    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class AllAccepted:
    """Many jobs as they stand after the event, in the order in which they were asked for."""

    jobs: tuple[Job, ...]


class RefusalCause(Enum):
    """What kind of no it is."""

    UNKNOWN = auto()  #: there is no such job, node or project
    CONFLICT = auto()  #: it does not fit the present state
    IMPOSSIBLE = auto()  #: no node could ever do it
    EXHAUSTED = auto()  #: there is too much already
    INVALID = auto()  #: it breaks a rule
    FORBIDDEN = auto()  #: only others may do it
    TAKEN = auto()  #: the key stands for something else already


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Nothing was changed, and why."""

    cause: RefusalCause
    message: str
    refusals: tuple[NodeRefusal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoneAccepted:
    """Nothing was changed, because of some of many jobs."""

    refused: Mapping[int, Refused]
    """Refusals by place, from 0; the first ones where there are very many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """There is nothing to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectKept:
    """The project as it stands after the event."""

    project: Project
    before: Project | None = None
    """The record as it was; None: it is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectGone:
    """The project as it was; it is there no longer."""

    project: Project


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowKept:
    """The window as it stands after the event."""

    window: Window
    before: Window | None = None
    """The window as it was; None: it is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowGone:
    """The window as it was; it is there no longer."""

    window: Window


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolKept:
    """What is said of a pool after the event; None: nothing, any longer."""

    pool: Pool | None
    before: Pool | None
    """What was said of it before; None: nothing."""
    warnings: tuple[str, ...] = ()
    """What may surprise, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotasSet:
    """Departments and projects are promised what was asked for."""

    warnings: tuple[str, ...] = ()
    """What cannot be kept of it, or may surprise; a sentence each."""


ProjectAnswer = ProjectKept | ProjectGone | QuotasSet
SettingAnswer = WindowKept | WindowGone | PoolKept
Answer = Accepted | AllAccepted | Refused | NoneAccepted | Noted | ProjectAnswer | SettingAnswer
