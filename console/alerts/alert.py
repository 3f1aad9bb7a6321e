"""Alerts as values, and who may see them; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.notifications.event_types import EventSeverity


class AlertKind(StrEnum):
    """What somebody should look at."""

    RANK_DIFFERS = "rank_differs"  #: a rank of a job that runs is unlike the others of its role
    NODE_UNREACHABLE = "node_unreachable"  #: the coordinator has not heard a node for a while, or it counts as lost
    GPU_BROKEN = "gpu_broken"  #: GPUs of a node have problems, so nothing is placed on them
    QUEUE_OLD = "queue_old"  #: a job has waited for long in the queue of a pool
    COORDINATOR_AWAY = "coordinator_away"  #: the console does not hear the coordinator
    CERTIFICATE_ENDS = "certificate_ends"  #: the certificate of the console ends soon, or has ended
    DELIVERIES_FAIL = "deliveries_fail"  #: the target of a subscription takes no events


ALERT_AFTER: Mapping[AlertKind, timedelta] = {
    AlertKind.NODE_UNREACHABLE: timedelta(minutes=1),
    AlertKind.COORDINATOR_AWAY: timedelta(seconds=30),
}
"""The time for which something has to be so, and then not so any more; of the other kinds none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSign:
    """Something that is so now, and that somebody should look at if it stays."""

    kind: AlertKind
    severity: EventSeverity
    subject: str
    """What it is about, such as `jobs/k3f0abcd`, `nodes/gpu-7`, `pools/h100` or `fleet`."""
    what: str = ""
    """What tells it from others of its kind about the same; empty: there are no others."""
    text: str
    """One sentence for people."""
    since: datetime
    """When it began."""
    project: str = ""
    """The project whose people may see it; empty: whoever sees any; `*`: only people of all projects."""
    access: Access = Access.VIEWER
    """What they have to be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Something that somebody should look at."""

    id: str
    """The same for as long as it lasts."""
    kind: AlertKind
    severity: EventSeverity
    subject: str
    """What it is about, such as `jobs/k3f0abcd`, `nodes/gpu-7`, `pools/h100` or `fleet`."""
    project: str
    """The project whose people see it; empty: whoever sees any; `*`: only people of all projects."""
    text: str
    """One sentence for people."""
    since: datetime
    until: datetime | None = None
    """When it was so last; None: it goes on."""


def alert_of(sign: AlertSign, until: datetime | None = None) -> Alert:
    """The alert that a sign has become."""
    what = f"/{sign.what}" if sign.what else ""
    return Alert(
        id=f"{sign.kind}/{sign.subject}{what}/{int(sign.since.timestamp() * 1000)}",
        kind=sign.kind,
        severity=sign.severity,
        subject=sign.subject,
        project=sign.project,
        text=sign.text,
        since=sign.since,
        until=until,
    )


def may_see(sign: AlertSign, grants: Mapping[str, Access]) -> bool:
    """Whether somebody with these grants may see an alert."""
    if not sign.project:
        return any(has.covers(sign.access) for has in grants.values())
    return any(grants[each].covers(sign.access) for each in {sign.project, EVERYWHERE} & grants.keys())
