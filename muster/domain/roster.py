"""The roster: the members of an attempt, and the files in which every execution finds it.

The file format is a superset of the one that Valohai's distributed tasks use, so code written for
`valohai-utils` reads it as it is; `docs/roster.md` describes every key.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from json.encoder import encode_basestring_ascii as _quoted
from typing import TypeAlias

from muster.domain.ids import ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.job import Network

MASTER_PORT_NAME = "master"
"""Name of the port that rank 0 always has: `MASTER_PORT`."""

_TO_THE_SECOND = len("1970-01-01T00:00:00")

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class PortLease:
    """A port of an execution, held from check-in until just before user code starts."""

    name: str
    host_port: int
    """Where peers reach it, at the execution's address."""
    container_port: int
    """Where user code listens; differs from `host_port` only on bridge networking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One execution of the attempt, as its peers see it."""

    rank: int
    execution: ExecutionId
    role: str
    node: NodeId
    address: str
    checked_in_at: datetime
    ports: tuple[PortLease, ...] = ()
    gpus: tuple[GpuUuid, ...] = ()

    def port(self, name: str) -> PortLease | None:
        """The lease of that name, if it has one."""
        return next((lease for lease in self.ports if lease.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """All members of one attempt, sorted by rank."""

    job: JobId
    job_name: str
    attempt: int
    network: Network
    members: tuple[Member, ...]

    @property
    def master(self) -> Member:
        """Rank 0."""
        return self.members[0]

    @property
    def master_port(self) -> int:
        """The port of rank 0 that peers connect to first; raises LookupError for a roster without one."""
        lease = self.master.port(MASTER_PORT_NAME)
        if lease is None:
            raise LookupError(f"rank 0 of {self.job} has no port named {MASTER_PORT_NAME}")
        return lease.host_port


CONFIG_FILES = ("distributed.json", "distributed.yaml", "hostfile", "hosts")
"""Every member has these."""


def config_files(roster: Roster, rank: int) -> dict[str, bytes]:
    """The files of one member by name, all of `CONFIG_FILES`."""
    names = host_names(roster)
    heads = {"config": _text(_config(roster, rank)), "master": _text(_master(roster))}
    members = [_entry(roster, member, name) for member, name in zip(roster.members, names, strict=True)]
    return {
        "distributed.json": _json(heads, members, rank).encode(),
        "distributed.yaml": _yaml(heads, members, rank).encode(),
        "hostfile": _hostfile(roster).encode(),
        "hosts": "".join(f"{address}\t{name}\n" for name, address in names.items()).encode(),
    }


def host_names(roster: Roster) -> dict[str, str]:
    """Name → address of every member (`worker-0`, …), numbered within its role."""
    seen: dict[str, int] = {}
    names: dict[str, str] = {}
    for member in roster.members:
        number = seen.get(member.role, 0)
        seen[member.role] = number + 1
        names[f"{member.role}-{number}"] = member.address
    return names


def _config(roster: Roster, rank: int) -> Json:
    size = len(roster.members)
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
    return {"address": roster.master.address, "port": roster.master_port}


def _entry(roster: Roster, member: Member, name: str) -> str:
    """A member on one line, as `_text` would write it in three times the time: each of a gang writes all of it."""
    bridge = roster.network is Network.BRIDGE
    exposed = {str(lease.host_port): str(lease.container_port) for lease in member.ports} if bridge else {}
    ports = {lease.name: lease.host_port for lease in member.ports}
    node, address = _quoted(member.node), _quoted(member.address)
    return (
        f'{{"announce_time": "{member.checked_in_at.isoformat()[:_TO_THE_SECOND]}", "identity": {node}, '
        f'"job_id": {_quoted(f"exec-{member.execution}")}, "member_id": "{member.rank}", '
        f'"network": {{"exposed_ports": {_map(exposed)}, "local_ips": [{address}], "public_ips": []}}, '
        f'"rank": {member.rank}, "role": {_quoted(member.role)}, "name": {_quoted(name)}, "node": {node}, '
        f'"address": {address}, "ports": {_map(ports)}, "gpus": {_text(list(member.gpus)) if member.gpus else "[]"}}}'
    )


def _map(values: Mapping[str, str | int]) -> str:
    return _text(dict(values)) if values else "{}"


def _hostfile(roster: Roster) -> str:
    """Open MPI's hostfile: one line a node, in rank order, with the number of its members as slots."""
    slots: dict[str, int] = {}
    for member in roster.members:
        slots[member.address] = slots.get(member.address, 0) + 1
    return "".join(f"{address} slots={count}\n" for address, count in slots.items())


def _text(value: Json) -> str:
    """On one line, for JSON as for YAML, to which JSON on one line is a flow collection with quoted texts."""
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
