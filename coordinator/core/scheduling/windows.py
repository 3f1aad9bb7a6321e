"""Which nodes windows close to a job now, and why: a rule of the job, the window and the time."""

from collections.abc import Mapping
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from muster.domain.fleet.window import Window
from muster.domain.ids import NodeId
from muster.domain.jobs.job import JobSpec
from muster.domain.quantity import format_duration, moment_text


def closed(window: Window, spec: JobSpec, now: datetime) -> bool:
    """Whether a job is not placed on nodes of a window at this time.

    Before its begin a job is that ends in time for sure: at the latest it is let go at the end of its check-in, and
    runs for its limit from then on.
    """
    if now >= window.ends or now < window.begins - window.notice:
        return False
    if window.project and window.project == spec.project:
        return False
    limit = spec.timeouts.run
    return limit is None or now + spec.armed_within + limit > window.begins


def closed_nodes(cluster: Cluster, spec: JobSpec, now: datetime) -> frozenset[NodeId]:
    """The nodes on which a job is not placed at this time; costs nothing where there are no windows."""
    windows = cluster.load.windows
    if not windows:
        return frozenset()
    return frozenset(node for window in windows if closed(window, spec, now) for node in windows.nodes_of(window))


def why_closed(cluster: Cluster, spec: JobSpec, now: datetime) -> Mapping[NodeId, str]:
    """The same nodes, each with a sentence without its subject."""
    return {
        node: _sentence(window, spec, now)
        for window in cluster.load.windows
        if closed(window, spec, now)
        for node in cluster.load.windows.nodes_of(window)
    }


def _sentence(window: Window, spec: JobSpec, now: datetime) -> str:
    whose = f"is for project {window.project} alone" if window.project else "is out of service"
    reason = f" ({window.reason})" if window.reason else ""
    if now >= window.begins:
        return f"{whose} until {moment_text(window.ends)}{reason}: window {window.name}"
    limit = spec.timeouts.run
    ends = (
        "the job has no limit on run time"
        if limit is None
        else f"the job may end later (timeouts.check_in {format_duration(spec.timeouts.check_in)}, "
        f"timeouts.run {format_duration(limit)})"
    )
    return f"{whose} from {moment_text(window.begins)}{reason}, and {ends}: window {window.name}"
