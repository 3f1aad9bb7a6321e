"""The roster: the members of an attempt, and the files in which every execution finds it.

The file format is a superset of the one that Valohai's distributed tasks use, so code written for
`valohai-utils` reads it as it is; `docs/roster.md` describes every key.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any, TypeAlias

from muster.domain.ids import AttemptId, GpuUuid, JobId, NodeId, execution_id
from muster.domain.jobs.job import Network
from muster.domain.jobs.member import Member, PortLease
from muster.domain.jobs.ports import MASTER_PORT_NAME

__all__ = [
    "CONFIG_FILES",
    "HOSTFILE",
    "MASTER_PORT_NAME",
    "Json",
    "Member",
    "PortLease",
    "Roster",
    "config_files",
    "host_names",
]

_TO_THE_SECOND = len("1970-01-01T00:00:00")
_EMPTY = "{}"

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """All members of one attempt: a table with a line for each, by rank.

    Every execution of a gang writes files of it, and their lines are the same for all. So what a line is made of is
    written once, by the coordinator, and whoever only writes files makes no members.
    """

    job: JobId
    job_name: str
    attempt: int
    network: Network
    roles: tuple[str, ...]
    nodes: tuple[str, ...]
    addresses: tuple[str, ...]
    checked_in: tuple[str, ...]
    """When: ISO 8601, UTC without a zone, in seconds."""
    ports: tuple[str, ...]
    """Name → where peers reach it, as JSON."""
    exposed: tuple[str, ...]
    """The map from where peers reach a port to where user code listens, on bridge networking; texts in JSON, empty
    otherwise.
    """
    gpus: tuple[str, ...]
    """UUIDs, as JSON."""
    peer_ports: tuple[str, ...]
    """Where other agents reach the agent of its node, at its address; 0: they cannot."""

    @property
    def attempt_id(self) -> AttemptId:
        """Names the attempt."""
        return AttemptId(self.job, self.attempt)

    @classmethod
    def of(cls, *, job: JobId, job_name: str, attempt: int, network: Network, members: Iterable[Member]) -> "Roster":
        """The roster with these members, sorted by rank. Of a check-in it keeps the second."""
        lines = [_line(member, network) for member in members]
        columns = zip(*lines, strict=True) if lines else ((),) * 8
        roles, nodes, addresses, checked_in, ports, exposed, gpus, peer_ports = columns
        return cls(
            job=job,
            job_name=job_name,
            attempt=attempt,
            network=network,
            roles=roles,
            nodes=nodes,
            addresses=addresses,
            checked_in=checked_in,
            ports=ports,
            exposed=exposed,
            gpus=gpus,
            peer_ports=peer_ports,
        )

    @property
    def members(self) -> tuple[Member, ...]:
        """All of them, by rank; made anew from the table."""
        return tuple(map(self.member, range(len(self.nodes))))

    def member(self, rank: int) -> Member:
        """One of them, made anew from its line; raises IndexError where there is none."""
        return Member(
            rank=rank,
            execution=execution_id(self.job, self.attempt, rank),
            role=self.roles[rank],
            node=NodeId(self.nodes[rank]),
            address=self.addresses[rank],
            checked_in_at=datetime.fromisoformat(self.checked_in[rank]).replace(tzinfo=UTC),
            ports=self._leases(rank),
            gpus=tuple(map(GpuUuid, json.loads(self.gpus[rank]))),
            peer_port=int(self.peer_ports[rank]),
        )

    def listened(self, rank: int) -> dict[str, int]:
        """Where the user code of one of them listens, by the names of its ports."""
        return {lease.name: lease.container_port for lease in self._leases(rank)}

    def endpoints(self, port: str) -> list[str]:
        """Where peers reach the port of this name of each member that has it, by rank: `address:number`."""
        named = re.compile(f"{re.escape(_quoted(port))}: ([0-9]+)")  # many times faster than to read a thousand lines
        found = zip(self.addresses, map(named.search, self.ports), strict=True)
        return [f"{address}:{number[1]}" for address, number in found if number is not None]

    @property
    def gpu_counts(self) -> list[int]:
        """How many GPUs each member has, by rank; a UUID stands between two quotes and has none in it."""
        return [uuids.count('"') // 2 for uuids in self.gpus]

    @property
    def master_address(self) -> str:
        """Where peers reach rank 0."""
        return self.addresses[0]

    @property
    def master_port(self) -> int:
        """The port of rank 0 that peers connect to first; raises LookupError for a roster without one."""
        for lease in self._leases(0):
            if lease.name == MASTER_PORT_NAME:
                return lease.host_port
        raise LookupError(f"rank 0 of {self.job} has no port named {MASTER_PORT_NAME}")

    def _leases(self, rank: int) -> tuple[PortLease, ...]:
        """The ports of one of them; where nothing else is said, user code listens where peers reach it."""
        inside = _read_map(self.exposed[rank])
        return tuple(
            PortLease(name=name, host_port=port, container_port=int(inside.get(str(port), port)))
            for name, port in _read_map(self.ports[rank]).items()
        )


HOSTFILE = "hostfile"
"""The file of hosts for mpirun; a framework may write one of its own."""
CONFIG_FILES = ("distributed.json", "distributed.yaml", HOSTFILE, "hosts")
"""Every member has these."""


_NOBODY: Mapping[str, str] = {}


def config_files(
    roster: Roster, rank: int, *, also: Mapping[str, str] = _NOBODY, public: bool = False
) -> dict[str, bytes]:
    """The files of one member by name, all of `CONFIG_FILES`.

    `also`: host names beside those of the roster, with their addresses. `public`: whether the address of a member
    stands among its public ones, too.
    """
    names = _names(roster)
    heads = {"config": _text(_config(roster, rank)), "master": _text(_master(roster))}
    entries = _entries(roster, names, public=public)
    hosts = (*zip(roster.addresses, names, strict=True), *((address, name) for name, address in also.items()))
    return {
        "distributed.json": _json(heads, entries, rank).encode(),
        "distributed.yaml": _yaml(heads, entries, rank).encode(),
        HOSTFILE: _hostfile(roster).encode(),
        "hosts": "".join(map("%s\t%s\n".__mod__, hosts)).encode(),
    }


def host_names(roster: Roster) -> dict[str, str]:
    """Name → address of every member (`worker-0`, …), numbered within its role."""
    return dict(zip(_names(roster), roster.addresses, strict=True))


def _line(member: Member, network: Network) -> tuple[str, ...]:
    """The line of a member in the table."""
    published = [f"{_quoted(lease.name)}: {lease.host_port}" for lease in member.ports]
    exposed = [f'"{lease.host_port}": "{lease.container_port}"' for lease in member.ports]
    return (
        member.role,
        member.node,
        member.address,
        member.checked_in_at.isoformat()[:_TO_THE_SECOND],
        _map(published),
        _map(exposed) if network is Network.BRIDGE else _EMPTY,
        _text(list(member.gpus)) if member.gpus else "[]",
        str(member.peer_port),
    )


def _map(entries: Sequence[str]) -> str:
    return f"{{{', '.join(entries)}}}" if entries else _EMPTY


def _read_map(text: str) -> dict[str, Any]:
    values: dict[str, Any] = {} if text == _EMPTY else json.loads(text)
    return values


def _names(roster: Roster) -> list[str]:
    numbers = {role: count() for role in roster.roles}
    return [f"{role}-{next(numbers[role])}" for role in roster.roles]


def _config(roster: Roster, rank: int) -> Json:
    size = len(roster.nodes)
    return {
        "group_name": f"task-{roster.job}-{roster.attempt}",
        "member_id": str(rank),
        "required_count": size,
        "job_id": roster.job,
        "job_name": roster.job_name,
        "attempt": roster.attempt,
        "rank": rank,
        "world_size": size,
    }


def _master(roster: Roster) -> Json:
    return {"address": roster.master_address, "port": roster.master_port}


def _entries(roster: Roster, names: Sequence[str], *, public: bool) -> list[str]:
    """The members, each on one line, as `_text` would write it in many times the time: each of a gang writes all."""
    lines = zip(
        count(),
        map(_quoted, roster.roles),
        map(_quoted, names),
        map(_quoted, roster.nodes),
        map(_quoted, roster.addresses),
        roster.checked_in,
        roster.ports,
        roster.exposed,
        roster.gpus,
        strict=False,
    )
    stem = f"exec-{execution_id(roster.job, roster.attempt, 0)[:-1]}"
    return [
        f'{{"announce_time": "{checked_in}", "identity": {node}, "job_id": "{stem}{rank}", "member_id": "{rank}", '
        f'"network": {{"exposed_ports": {exposed}, "local_ips": [{address}], '
        f'"public_ips": [{address if public else ""}]}}, "rank": {rank}, "role": {role}, "name": {name}, '
        f'"node": {node}, "address": {address}, "ports": {ports}, "gpus": {gpus}}}'
        for rank, role, name, node, address, checked_in, ports, exposed, gpus in lines
    ]


def _hostfile(roster: Roster) -> str:
    """Open MPI's hostfile: one line a node, in rank order, with the number of its members as slots."""
    return "".join(map("%s slots=%d\n".__mod__, Counter(roster.addresses).items()))


def _text(value: Json) -> str:
    """The value on one line, for JSON as for YAML, to which JSON on one line is a flow collection with quoted texts."""
    return json.dumps(value)


def _json(heads: Mapping[str, str], members: Sequence[str], rank: int) -> str:
    """One line a member: written once for both files, and by every member of a gang at the same time."""
    head = "".join(f'  "{key}": {text},\n' for key, text in heads.items())
    listed = ",\n    ".join(members)
    return f'{{\n{head}  "members": [\n    {listed}\n  ],\n  "self": {members[rank]}\n}}\n'


def _yaml(heads: Mapping[str, str], members: Sequence[str], rank: int) -> str:
    head = "".join(f'"{key}": {text}\n' for key, text in heads.items())
    listed = "\n  - ".join(members)
    return f'{head}"members":\n  - {listed}\n"self": {members[rank]}\n'
