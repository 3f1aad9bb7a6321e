"""How the killer kills: processes and all that they started, and containers with the engine's help and without it."""

import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.core.deadlines import ExecutionDeadline
from agent.executions.layout import STARTED
from agent.runtimes.kernel import confinement
from agent.runtimes.kernel.pids import Process, process
from agent.runtimes.kernel.subtree import strike
from agent.runtimes.process.record import read_record

ENGINE_LIMIT = 3.0
"""Seconds in which the engine answers; after that it is taken to be away."""
LONGEST_ENGINE_ANSWER = 4 << 20
LABEL_OF_EXECUTIONS = "muster.execution"
"""The label that the runtime gives to containers; the code of the runtime would make the killer ten times as large."""

_OK, _NOT_FOUND = 200, 404


def kill(deadline: ExecutionDeadline, mark: Callable[[], None]) -> bool:
    """Kill all that runs of an execution, after `mark`; True when nothing of it runs any more."""
    directory = Path(deadline.directory)
    if read_record(directory) is not None:
        return _kill_processes(directory, mark)
    if deadline.socket:
        return _kill_container(deadline, directory, mark)
    return True


def _kill_processes(directory: Path, mark: Callable[[], None]) -> bool:
    record = read_record(directory)
    if record is None or (record.complete and record.alone):
        return True
    subtree = record.subtree(directory.name)

    def members() -> tuple[Process, ...]:
        """None of an execution that was cleared away meanwhile: its supervisor may do something else by now."""
        found = subtree.members()
        return () if read_record(directory) is None else found

    if members():
        mark()
        if not record.supervisor.runs:  # else it would die as well, and nobody would know how the program ended
            for group in record.groups:
                confinement.kill(group)
        strike(members)
        return False  # the next look tells
    return record.program is not None or not record.supervisor.runs


def _kill_container(deadline: ExecutionDeadline, directory: Path, mark: Callable[[], None]) -> bool:
    """First its processes themselves, which waits for nobody; then by the engine, which knows those that are hidden."""
    container = _started(directory)
    if container:
        _kill_by_cgroup(container, mark)
    try:
        return _kill_by_engine(deadline, mark)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # it is away, hangs, or talks nonsense
        return container is not None and not _members(container)


def _started(directory: Path) -> str | None:
    """The id of the container; empty for one that never ran, None where the disk does not tell."""
    try:
        return (directory / STARTED).read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):
        return None


def _kill_by_engine(deadline: ExecutionDeadline, mark: Callable[[], None]) -> bool:
    """Whether the engine says that it does not run; it is killed if it does."""
    status, found = _call(deadline.socket, "GET", f"/containers/{deadline.container}/json")
    if status == _NOT_FOUND:
        return True
    if status != _OK:
        raise OSError(f"the engine answers {status}")
    theirs = found["Config"]["Labels"].get(LABEL_OF_EXECUTIONS) != deadline.execution
    if theirs or not found["State"]["Running"]:
        return True
    mark()
    _call(deadline.socket, "POST", f"/containers/{found['Id']}/kill")
    return False  # the next look tells


def _kill_by_cgroup(container: str, mark: Callable[[], None]) -> None:
    """Kill all processes of a container that may be killed; with its first one the kernel ends the others."""
    members = _members(container)
    if members:
        mark()
    for member in members:
        with suppress(OSError):
            member.kill()


def _members(container: str) -> list[Process]:
    """Processes of a container that have not ended, as the names of their cgroups say."""
    if not container:
        return []
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 (ten times faster)
        if name.isdigit():
            with suppress(OSError):
                member = process(int(name))  # before its cgroup is read: another one may get the number
                if container in Path(f"/proc/{name}/cgroup").read_text(encoding="utf-8") and member.runs:
                    found.append(member)
    return found


def _call(path: str, method: str, target: str) -> tuple[int, Any]:
    """One request to the engine; status and what it says."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as engine:
        engine.settimeout(ENGINE_LIMIT)
        engine.connect(path)
        engine.sendall(f"{method} {target} HTTP/1.0\r\nHost: docker\r\nContent-Length: 0\r\n\r\n".encode())
        answer = b""
        while len(answer) < LONGEST_ENGINE_ANSWER and (data := engine.recv(65536)):
            answer += data
    head, _, body = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    return status, json.loads(body) if body and status == _OK else None
