"""What code in a Muster job asks: who am I, and who are the others? It needs only the standard library.

    from muster import worker

    me = worker.load()
    print(me.rank, "of", me.world_size, "- the master listens at", me.master)

The answers come from the roster file `distributed.json`, which is complete before user code starts.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

CONFIG_DIR = "/muster/config"
"""Where a container finds the roster files when MUSTER_CONFIG_DIR is not set."""


class NotInAJobError(RuntimeError):
    """The code does not run inside a Muster job, or its roster file cannot be read."""


class Address(NamedTuple):
    """What to connect to; unpacks like the pair that sockets take."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Member:
    """One execution of this attempt, as its peers see it."""

    rank: int
    role: str
    name: str
    """`worker-0`, `worker-1`, …: also a host name inside containers."""
    node: str
    address: str
    ports: Mapping[str, int]
    """Name → where peers reach it at `address`."""
    gpus: tuple[str, ...]
    """UUIDs."""


@dataclass(frozen=True)
class Worker:
    """The execution that asks, and its peers."""

    rank: int
    world_size: int
    local_rank: int
    """The place among the executions of this attempt on the same node."""
    local_world_size: int
    attempt: int
    job: str
    """The job's id."""
    job_name: str
    master: Address
    """Where rank 0 listens."""
    members: tuple[Member, ...]
    """All executions by rank, this one included."""
    listen: Mapping[str, int]
    """Port name → the port to listen on; differs from `ports` only on bridge networking."""
    outputs: Path
    """What is written here is kept after the end."""

    @property
    def me(self) -> Member:
        """The execution that asks, as its peers see it."""
        return self.members[self.rank]

    @property
    def ports(self) -> Mapping[str, int]:
        """Port name → where peers reach this execution."""
        return self.me.ports

    @property
    def is_master(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0

    @property
    def peers(self) -> tuple[Member, ...]:
        """All executions but this one."""
        return tuple(member for member in self.members if member.rank != self.rank)


def load(path: str | os.PathLike[str] | None = None) -> Worker:
    """The execution that asks and its peers, from `distributed.json` (or the file given).

    Raises NotInAJobError where there is no such file.
    """
    file = Path(path) if path is not None else Path(os.environ.get("MUSTER_CONFIG_DIR", CONFIG_DIR), "distributed.json")
    document = _read(file)
    try:
        return _worker(document, os.environ)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise NotInAJobError(f"{file} is not a roster as Muster writes it: {error!r}") from error


def _read(file: Path) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise NotInAJobError(
            f"there is no roster at {file}: this code does not run inside a Muster job "
            "(start it with `muster run` or `muster submit`, or set MUSTER_CONFIG_DIR)",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise NotInAJobError(f"cannot read the roster {file}: {error}") from error


def _worker(document: dict[str, Any], environ: Mapping[str, str]) -> Worker:
    config, master = document["config"], document["master"]
    members = tuple(_member(entry) for entry in document["members"])
    beside = [member.rank for member in members if member.node == members[config["rank"]].node]
    return Worker(
        rank=config["rank"],
        world_size=config["world_size"],
        # Not from LOCAL_RANK: a launcher like torchrun sets that anew for each of its own processes.
        local_rank=beside.index(config["rank"]),
        local_world_size=len(beside),
        attempt=config["attempt"],
        job=config["job_id"],
        job_name=config["job_name"],
        master=Address(master["address"], master["port"]),
        members=members,
        listen=_listen(document["self"]),
        outputs=Path(environ.get("MUSTER_OUTPUTS_DIR", "/muster/outputs")),
    )


def _member(entry: dict[str, Any]) -> Member:
    return Member(
        rank=entry["rank"],
        role=entry["role"],
        name=entry["name"],
        node=entry["node"],
        address=entry["address"],
        ports=dict(entry["ports"]),
        gpus=tuple(entry["gpus"]),
    )


def _listen(own: dict[str, Any]) -> dict[str, int]:
    # On bridge networking `exposed_ports` maps each published port of the node to the container's own.
    inside = own["network"]["exposed_ports"]
    return {name: int(inside.get(str(port), port)) for name, port in own["ports"].items()}
