"""How the keeper kills: sessions of processes, and containers, with the engine's help or without it."""

import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.core.deadlines import Deadline
from agent.runtimes.pids import process
from agent.runtimes.process_record import read_record
from agent.runtimes.session import Session

ENGINE_LIMIT = 3.0
"""Seconds in which the engine answers; after that its containers are killed without it."""
LONGEST_ANSWER = 4 << 20
STARTED = "started"
"""In the room, where the runtime leaves it: the id of the container."""

_OK, _DONE = 200, 204


def kill(deadline: Deadline, mark: Callable[[], None]) -> bool:
    """Kill all that runs of an execution, after `mark`; True when nothing of it runs any more."""
    room = Path(deadline.room)
    if read_record(room) is not None:
        return _kill_processes(room, mark)
    if deadline.socket:
        return _kill_container(deadline, room, mark)
    return True


def _kill_processes(room: Path, mark: Callable[[], None]) -> bool:
    record = read_record(room)
    if record is None or record.program is None:
        return record is None or not record.supervisor.runs
    session = Session(record.program)
    if not session.members():
        return True
    mark()
    session.signal(signal.SIGKILL)
    return not session.members()


def _kill_container(deadline: Deadline, room: Path, mark: Callable[[], None]) -> bool:
    """By the engine; if that does not answer, all processes of the container that may be killed."""
    try:
        status, state = _call(deadline.socket, "GET", f"/containers/{deadline.container}/json")
        if status != _OK or not state["State"]["Running"]:
            return True
        mark()
        status, _ = _call(deadline.socket, "POST", f"/containers/{deadline.container}/kill")
        if status == _DONE:
            return False  # the next look tells
    except (OSError, ValueError, KeyError):
        pass
    return _kill_by_cgroup(room, mark)


def _kill_by_cgroup(room: Path, mark: Callable[[], None]) -> bool:
    try:
        container = (room / STARTED).read_text(encoding="ascii").strip()
    except OSError:
        return False
    pids = _members(container)
    if pids:
        mark()
    for pid in pids:
        process(pid).kill()
    return not _members(container)


def _members(container: str) -> list[int]:
    """Processes of a container, as the names of their cgroups say."""
    if not container:
        return []
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 (ten times faster)
        if name.isdigit():
            with suppress(OSError):
                if container in Path(f"/proc/{name}/cgroup").read_text(encoding="ascii"):
                    found.append(int(name))
    return found


def _call(path: str, method: str, target: str) -> tuple[int, Any]:
    """One request to the engine; status and what it says."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as engine:
        engine.settimeout(ENGINE_LIMIT)
        engine.connect(path)
        engine.sendall(f"{method} {target} HTTP/1.0\r\nHost: docker\r\nContent-Length: 0\r\n\r\n".encode())
        answer = b""
        while len(answer) < LONGEST_ANSWER and (data := engine.recv(65536)):
            answer += data
    head, _, body = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    return status, json.loads(body) if body and status == _OK else None
