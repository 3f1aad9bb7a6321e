"""Executions that placement takes together, as they need the same: those of a role, or its first one by itself."""

from dataclasses import dataclass

from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.ports import node_ports


@dataclass(frozen=True, slots=True)
class Part:
    """Executions of one role that are seated together."""

    role: Role
    count: int
    ports: frozenset[int] = frozenset()
    """Numbers of its node that each of them takes, so that no two of them are on one node."""
    first: frozenset[int] = frozenset()
    """Numbers that the first of them takes besides."""

    @property
    def alone(self) -> "Part":
        """The first of them."""
        return Part(self.role, 1, self.ports | self.first)

    @property
    def others(self) -> "Part":
        """All but the first."""
        return Part(self.role, self.count - 1, self.ports)


def part_of(spec: JobSpec, place_in_job: int) -> Part:
    """All executions of one role, by its place in the job."""
    role = spec.roles[place_in_job]
    if not role.ports:
        return Part(role, role.count)
    ports = node_ports(spec, role, rank=1)
    if place_in_job != 0:
        return Part(role, role.count, ports)
    part = Part(role, role.count, ports, node_ports(spec, role, rank=0) - ports)
    return part.alone if part.count == 1 else part
