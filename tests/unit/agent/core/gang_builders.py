"""Whole gangs for the tests of what user code finds, and what each of their executions is launched with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.core.launching.launch import launch, port_requests
from agent.core.launching.site import LaunchSite, NetworkInterface
from muster.domain.gangs.plan import Assignment, Launch
from muster.domain.gangs.roster import Member, PortLease, Roster
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.job import Network, Resources, Role
from tests.unit.agent.core.ledger_builders import JOB, NOW, assignment, execution

SITE = LaunchSite(config="/muster/config", outputs="/muster/outputs", interface=NetworkInterface(name="eno1"))


def framed(name: str, roles: Sequence[str], gpus: int = 0, *, attempt: int = 1, **changes: Any) -> list[Launch]:
    """What each execution of a job with a framework finds, by rank."""
    network = Network(str(changes.pop("network", Network.HOST)))
    framework = Framework(name=FrameworkName(name), **changes)
    return launched(gang(roles, gpus, attempt=attempt, network=network, framework=framework))


def gang(roles: Sequence[str], gpus: int = 0, *, image: str | None = None, **changes: Any) -> list[Assignment]:
    """The executions of a job by rank, each with GPUs of its own and the ports that it asks for."""
    network = changes.get("network", Network.HOST)
    return [
        assignment(
            rank,
            size=len(roles),
            sequence=7,
            gpus=tuple(GpuUuid(f"GPU-{rank}-{number}") for number in range(gpus)),
            role=Role(
                name=role,
                count=roles.count(role),
                image="trainer:1" if network is Network.BRIDGE else image,
                command=("train",),
                resources=Resources(gpus=gpus, cpu_millis=8000),
            ),
            **changes,
        )
        for rank, role in enumerate(roles)
    ]


def launched(orders: Sequence[Assignment], nodes: Sequence[str] = (), site: LaunchSite = SITE) -> list[Launch]:
    """What each of these executions finds, on nodes of its own unless others are named."""
    roster = roster_of(orders, nodes)
    return [launch(order, roster, site) for order in orders]


def roster_of(orders: Sequence[Assignment], nodes: Sequence[str] = ()) -> Roster:
    """The roster of these executions, on nodes of their own unless others are named."""
    first, members = orders[0], map(member, orders)
    placed = [replace(each, node=NodeId(nodes[each.rank])) if nodes else each for each in members]
    return Roster.of(job=JOB, job_name=first.job_name, attempt=first.attempt, network=first.network, members=placed)


def member(order: Assignment) -> Member:
    requests = port_requests(order)
    return Member(
        rank=order.rank,
        execution=execution(order.rank, order.attempt),
        role=order.role.name,
        node=NodeId(f"node-{order.rank}"),
        address=f"10.0.0.{order.rank + 1}",
        checked_in_at=NOW,
        ports=tuple(
            PortLease(
                name=each.name,
                host_port=20000 + 10 * order.rank + place,
                container_port=each.port or 20000 + 10 * order.rank + place,
            )
            for place, each in enumerate(requests)
        ),
        gpus=order.gpus,
    )


def workers(size: int) -> list[str]:
    return ["worker"] * size


def found(launched: Launch) -> Mapping[str, str]:
    return {**launched.defaults, **launched.env}
