"""What code in a Muster job asks: who am I, and who are the others? It needs only the standard library.

    from muster import worker

    me = worker.load()
    print(me.rank, "of", me.world_size, "- the master listens at", me.master)

The answers come from the roster file `distributed.json`, which is complete before user code starts.

A job that is stopped, or gives way to another one, has time to save what it did:

    for step in range(steps):
        train(step)
        if worker.noticed():
            save(step)
            worker.checkpointed()
            break

A job whose file has `checkpoint` goes on from what it saved, also on other nodes:

    start = worker.restored()  # None: it begins anew
    with worker.checkpoint("step-1200") as directory:
        save(directory / "model.pt")

What it prints with `metrics` is plotted by `muster metrics`; what it leaves can be described:

    worker.metrics(step=step, loss=loss)
    save(worker.output("model/final.pt"))
    worker.describe("model/final.pt", loss=loss)
"""

import json
import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

CONFIG_DIR = "/muster/config"
"""Where a container finds the roster files when MUSTER_CONFIG_DIR is not set."""
STATUS_DIR = "/muster/status"
"""Where a container tells its agent how far it is when MUSTER_STATUS_DIR is not set."""
OUTPUTS_DIR = "/muster/outputs"
"""Where a container puts what it wants to have kept when MUSTER_OUTPUTS_DIR is not set."""
MOST_DESCRIBED = 64 * 1024
"""Bytes that can be said of one output."""
NOTICE_LOOK = 1.0
"""Seconds between two looks of whoever waits for the notice."""


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


@dataclass(frozen=True)
class Notice:
    """What an execution that is being stopped is told."""

    reason: str
    """`stopped`, `preempted`, `suspended`, `drained`, `idle`, `time_limit`, `failed`, `finished` or `disconnected`."""
    kill_at: datetime
    """The time at which what is left of it is killed."""

    @property
    def seconds_left(self) -> float:
        """How long that is from now on; never below zero."""
        return max(0.0, (self.kill_at - datetime.now(timezone.utc)).total_seconds())  # noqa: UP017 - images have old Pythons

    @property
    def comes_back(self) -> bool:
        """Whether the job starts again later without having failed, so that a checkpoint is of use."""
        return self.reason in {"preempted", "suspended", "drained"}


def noticed() -> Notice | None:
    """The notice that this execution is being stopped; None: it is not. Cheap enough to be asked at each step."""
    try:
        descriptor = os.open(os.path.join(os.environ.get("MUSTER_CONFIG_DIR", CONFIG_DIR), "notice.json"), os.O_RDONLY)  # noqa: PTH118 - a path object costs as much as all else
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read()
    try:
        facts = json.loads(content)
        return Notice(reason=facts["reason"], kill_at=datetime.fromisoformat(facts["kill_at"]))
    except (KeyError, TypeError, ValueError) as error:
        raise NotInAJobError(f"notice.json is not as Muster writes it: {error!r}") from error


async def wait_for_notice() -> Notice:
    """The notice that this execution is being stopped, once there is one."""
    import asyncio  # noqa: PLC0415 - whoever awaits it has loaded it; all others do without

    while (notice := noticed()) is None:  # noqa: ASYNC110 - another program writes it, and tells nobody
        await asyncio.sleep(NOTICE_LOOK)
    return notice


def checkpointed() -> None:
    """Tell Muster that a checkpoint is whole: what was done before it is not lost if the job is stopped now.

    One execution says so once all parts are written. Raises NotInAJobError outside of a job.
    """
    directory = Path(os.environ.get("MUSTER_STATUS_DIR", STATUS_DIR))
    temporary = directory / f".checkpoints.{os.getpid()}"
    try:
        temporary.write_text(f"{datetime.now(timezone.utc).isoformat()}\n")  # noqa: UP017 - as above
        temporary.replace(directory / "checkpoints")
    except FileNotFoundError as error:
        with suppress(OSError):
            temporary.unlink()
        outside = "this code does not run inside a Muster job, or MUSTER_STATUS_DIR is wrong"
        raise NotInAJobError(f"there is no directory {directory}: {outside}") from error


@contextmanager
def checkpoint(name: str) -> Iterator[Path]:
    """Save a checkpoint: what is written to the path that this gives counts once the block has ended, and never before.

    It is a directory that is there already. Each checkpoint has a name of its own. Raises NotInAJobError outside of a
    job whose file has `checkpoint`, and FileExistsError where there is one of that name.

    >>> with checkpoint("step-1200") as directory:
    ...     save(directory / "model.pt")
    """
    where = os.environ.get("MUSTER_CHECKPOINT_DIR")
    if not where:
        raise NotInAJobError("there is no MUSTER_CHECKPOINT_DIR: this job stores no checkpoints (key `checkpoint`)")
    if not name or name.startswith(".") or name.endswith(".tmp") or "/" in name:
        raise ValueError(f"{name!r} cannot be the name of a checkpoint")
    place, fresh = Path(where, name), Path(where, f"{name}.tmp")
    if place.exists():
        raise FileExistsError(f"there is a checkpoint {name} already: give each one a name of its own")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    yield fresh
    for directory, _, files in os.walk(fresh):
        for path in (directory, *(os.path.join(directory, file) for file in files)):  # noqa: PTH118 - as os.walk has it
            _sync(path)
    Path(where, f".{name}.finished").touch()
    fresh.rename(place)
    _sync(where)
    checkpointed()


def inputs(name: str) -> "tuple[Path, ...]":
    """The files of an input of the job, as `inputs.json` lists them; sidecars that describe others are not among them.

    Raises NotInAJobError where there is no such list, and KeyError for a name that the job file does not have.

    >>> [path.name for path in inputs("images")]
    ['0001.png', '0002.png']
    """
    file = Path(os.environ.get("MUSTER_CONFIG_DIR", CONFIG_DIR), "inputs.json")
    if not file.exists():
        raise NotInAJobError(f"there is no {file}: this job has no inputs (key `inputs`), or this is no Muster job")
    listed = _read(file)
    try:
        places = {each: tuple(Path(one["path"]) for one in said["files"]) for each, said in listed.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise NotInAJobError(f"{file} is not as Muster writes it: {error!r}") from error
    if name not in places:
        raise KeyError(f"the job has no input {name}; it has {', '.join(places) or 'none'}")
    return places[name]


def output(path: "str | os.PathLike[str]") -> Path:
    """Where to write a file so that it is kept after the end: this path in the outputs directory.

    The directories above it are made. Raises ValueError for a path that leads out of the outputs directory.

    >>> save(output("model/final.pt"))
    """
    directory = Path(os.environ.get("MUSTER_OUTPUTS_DIR", OUTPUTS_DIR))
    place = Path(os.path.normpath(directory / path))
    if directory not in place.parents:
        raise ValueError(f"{path} is not in the outputs directory {directory}: give a path in it")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def describe(path: "str | os.PathLike[str]", **facts: object) -> None:
    """Say something of an output, which `muster outputs -o json` shows with it, and other jobs have with their input.

    What was said before of other names stays. A number that is not finite becomes text. Raises ValueError for a path
    that leads out of the outputs directory or more than 64 KiB, and TypeError for what JSON does not have.

    >>> describe("model/final.pt", loss=0.12, epoch=30)
    """
    place = output(path)
    beside = place.with_name(f"{place.name}.metadata.json")
    said = _read(beside) if beside.exists() else {}
    if not isinstance(said, dict):
        raise TypeError(f"{beside} is no JSON object: remove it")
    content = json.dumps({**said, **{key: _finite(each) for key, each in facts.items()}})
    if len(content) > MOST_DESCRIBED:
        raise ValueError(f"{len(content)} bytes are said of {path}; {MOST_DESCRIBED} are the most")
    fresh = beside.with_name(f".{beside.name}.{os.getpid()}")
    fresh.write_text(content, encoding="utf-8")
    fresh.replace(beside)


def publish(path: "str | os.PathLike[str]") -> Path:
    """Say that an output is whole, so that it is stored now where the job file has `outputs: {live: read-only}`.

    Takes the permission to write from a file, or from all files below a directory, once they are on the disk. A
    relative path counts from the outputs directory. Works outside of jobs with absolute paths, too.

    >>> publish("epoch-3/model.pt")
    """
    place = Path(os.environ.get("MUSTER_OUTPUTS_DIR", OUTPUTS_DIR), path)
    if not place.exists():
        raise FileNotFoundError(f"there is no {place} to publish")
    files = [place] if place.is_file() else [each for each in place.rglob("*") if each.is_file()]
    for each in files:
        if not each.is_symlink():
            _sync(each)
            each.chmod(each.stat().st_mode & 0o555)
    return place


def restored() -> "Path | None":
    """The checkpoint from which this attempt goes on; None: it begins anew."""
    found = os.environ.get("MUSTER_CHECKPOINT")
    return Path(found) if found else None


def _sync(path: "str | Path") -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def metrics(**values: object) -> None:
    """Print a point: a line on stdout that is a JSON object, which `muster metrics` shows and plots.

    Numbers are plotted, also those of arrays and tensors with one element; text is shown. One of `step`, `global_step`,
    `iteration` and `epoch` is the axis. A number that is not finite is printed as text, so training goes on. Raises
    TypeError for anything else. Works outside of jobs, too.

    >>> metrics(step=1200, loss=0.41)
    {"step": 1200, "loss": 0.41}
    """
    line = json.dumps({key: _plain(key, value) for key, value in values.items()})
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _plain(key: str, value: object) -> "float | str | bool":
    """A value as JSON has it."""
    if isinstance(value, (bool, str)):
        return value
    if not isinstance(value, (int, float)):
        try:
            value = float(value)  # type: ignore[arg-type]  # whatever turns into a number will do
        except (TypeError, ValueError):
            kind = type(value).__name__
            raise TypeError(f"{key} is neither a number nor text: {kind}") from None
    return value if isinstance(value, int) or math.isfinite(value) else str(value)


def _finite(value: Any) -> Any:  # noqa: ANN401 - JSON
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


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
        outside = "this code does not run inside a Muster job (start it with `muster run`, or set MUSTER_CONFIG_DIR)"
        raise NotInAJobError(f"there is no roster at {file}: {outside}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise NotInAJobError(f"cannot read {file}: {error}") from error


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
