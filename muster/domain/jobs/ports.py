"""Which ports an execution has, and which of them are numbers of its node that nobody else can have there."""

from muster.domain.jobs.job import JobSpec, Network, PortRequest, Role

MASTER_PORT_NAME = "master"
"""Name of the port that rank 0 always has: `MASTER_PORT`."""

_NONE: frozenset[int] = frozenset()


def ports_of(role: Role, rank: int, network: Network) -> tuple[PortRequest, ...]:
    """The ports of one execution: as declared, and rank 0 always has one named `master`.

    Peers connect to the master of rank 0 alone. So the other ranks of a role that fixes its number get any number, as
    several of them may be on one node; on bridge networking each container has all numbers for itself.
    """
    declared = role.ports
    if rank == 0:
        known = any(request.name == MASTER_PORT_NAME for request in declared)
        return declared if known else (PortRequest(name=MASTER_PORT_NAME), *declared)
    if network is Network.BRIDGE or not any(map(_is_fixed_master, declared)):
        return declared
    return tuple(PortRequest(name=each.name) if _is_fixed_master(each) else each for each in declared)


def node_ports(spec: JobSpec, role: Role, rank: int) -> frozenset[int]:
    """Numbers of its node that an execution asks for; none on bridge networking, where the agent chooses them."""
    if not role.ports or spec.network is not Network.HOST:
        return _NONE
    return frozenset(request.port for request in ports_of(role, rank, spec.network) if request.port is not None)


def _is_fixed_master(request: PortRequest) -> bool:
    return request.name == MASTER_PORT_NAME and request.port is not None
