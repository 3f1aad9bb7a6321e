"""Subscriptions: which events go to which target; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import ClassVar

from muster.domain.event import FleetEvent, JobEvent
from muster.domain.notifications.event_types import EventSeverity, severity_of, type_of
from muster.domain.notifications.happening import Happening


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTarget:
    """A program that gets each event by HTTP, signed."""

    kind: ClassVar[str] = "webhook"
    url: str
    keys: tuple[bytes, ...] = field(repr=False)
    """Keys that sign, the newest first; two while one is replaced by the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackTarget:
    """A channel of Slack, Mattermost or whoever else understands Slack's incoming webhooks."""

    kind: ClassVar[str] = "slack"
    url: str = field(repr=False)
    """Whoever has it may write there, so it is a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MailTarget:
    """People who get mail."""

    kind: ClassVar[str] = "mail"
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttTarget:
    """The broker of MQTT."""

    kind: ClassVar[str] = "mqtt"


Target = WebhookTarget | SlackTarget | MailTarget | MqttTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSubscription:
    """Which events go where."""

    name: str
    target: Target
    events: tuple[str, ...] = ("*",)
    """Types of events; `*` stands for any characters."""
    minimum: EventSeverity = EventSeverity.INFO
    """Only events that are at least so grave."""
    projects: tuple[str, ...] = ()
    """Only events of these projects and of their jobs; none: of all, and of nodes and the fleet."""
    jobs: str = "*"
    """Only jobs whose names are like this; other events go as they do."""
    owners: tuple[str, ...] = ()
    """Only jobs of these accounts; none: of all."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Only jobs with these labels."""

    def wants(self, told: Happening) -> bool:
        """Whether an event goes to its target."""
        event = told.event
        if not severity_of(event.kind).covers(self.minimum):
            return False
        if not any(fnmatchcase(type_of(event.kind), pattern) for pattern in self.events):
            return False
        if isinstance(event, JobEvent):
            return self._wants_job(told)
        if self.projects:
            return isinstance(event, FleetEvent) and event.project in self.projects
        return True

    def _wants_job(self, told: Happening) -> bool:
        job = told.job
        return (
            job is not None
            and (not self.projects or job.project in self.projects)
            and (not self.owners or job.owner in self.owners)
            and fnmatchcase(job.name, self.jobs)
            and self.labels.items() <= job.labels.items()
        )


def followed_name(project: str, name: str) -> str:
    """The name of a followed subscription in the console; none of its file is like it."""
    return f"{project}/{name}"


def key_of(name: str) -> tuple[str, str] | None:
    """The project and the name of a followed subscription; None: it is one of the file."""
    project, slash, own = name.partition("/")
    return (project, own) if slash else None
