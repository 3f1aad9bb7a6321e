"""What a job can reach with the rights that it has: of agent, coordinator, engine and other executions nothing."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.deployment import PORT, Deployment
from tests.e2e.waiting import until

pytestmark = pytest.mark.fleet

PROBE = """
import os, pathlib, signal, socket, ssl, stat, subprocess, sys

found = []
me, parents = os.getpid(), {os.getpid(), os.getppid()}

for path in pathlib.Path(sys.argv[1]).read_text().splitlines():
    for right, what in ((os.R_OK, "reads"), (os.W_OK, "writes")):
        if os.access(path, right):
            found.append(f"{what} {path}")

for entry in pathlib.Path("/proc").glob("[0-9]*"):
    pid = int(entry.name)
    try:
        if entry.stat().st_uid == os.getuid() or pid in parents:
            continue
        os.kill(pid, 0)
        found.append(f"signals {pid} {(entry / 'comm').read_text().strip()}")
    except (PermissionError, FileNotFoundError, ProcessLookupError):
        pass
    for name in ("environ", "mem", "maps"):
        try:
            if (entry / name).open("rb").read(1):
                found.append(f"reads {name} of {pid}")
        except OSError:
            pass

for path in sys.argv[2].split(":"):
    with socket.socket(socket.AF_UNIX) as engine:
        try:
            engine.connect(path)
            found.append(f"talks to {path}")
        except OSError:
            pass

for line in pathlib.Path("/proc/net/unix").read_text().splitlines():
    if "muster" in line.lower() and "/" not in line:
        found.append(f"sees a socket {line}")

for address in sys.argv[3].split(","):
    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with socket.create_connection((host, int(port)), 5) as plain, context.wrap_socket(plain) as line:
            line.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\\0\\0\\0\\4\\0\\0\\0\\0\\0")
            line.settimeout(5)
            if line.recv(9):
                found.append(f"is heard at {address}")
    except OSError:
        pass

print("found", *found, sep="\\n")
print("done")
"""


@pytest.fixture
def probed(muster: Deployment) -> Iterator[dict[str, Any]]:
    """A job that looks for what it could use, with the addresses at which only nodes are heard."""
    node = muster.fleet.nodes[0]
    muster.start_agent(node, "--processes")
    muster.await_nodes(1)
    victim = muster.submit({"name": "victim", "command": ["sleep", "300"], "env": {"SECRET": "value"}})
    muster.await_states(victim, ["running"])
    peer_port = (muster.directory / node.name / "peer_port").read_text().strip()
    coordinator = muster.fleet.coordinator.address
    yield {
        "name": "probe",
        "command": [
            "python3",
            "-I",
            "/tmp/probe.py",
            "/tmp/paths",
            ":".join((str(node.engine.socket), "/var/run/docker.sock", "/run/containerd/containerd.sock")),
            f"{coordinator}:{PORT + 1},{node.address}:{peer_port}",
        ],
        "env": {"PATH": "/usr/bin:/bin:/usr/local/bin"},
    }
    muster.run("stop", victim)
    assert muster.ended(victim)["phase"] == "stopped"


def everything(muster: Deployment) -> str:
    """Every file of coordinator and agents, as if somebody had told the job.

    Only rosters are left out: they are no secret, and all processes of a node's jobs are the same user.
    """
    kept = (muster.directory / "coordinator", *(muster.directory / name for name in muster.agents))
    return "\n".join(
        str(path) for top in kept for path in top.rglob("*") if path.is_file() and path.parent.name != "config"
    )


def outcome(muster: Deployment, job: dict[str, Any]) -> list[str]:
    """What the probe found."""
    id_ = muster.submit(job)
    assert muster.ended(id_)["phase"] == "succeeded", muster.run("logs", id_).out
    lines: list[str] = until(
        lambda: [line["text"] for line in muster.log_lines(id_)] or None, within=30, what="what the probe says"
    )
    return lines


def test_a_container_on_the_network_of_the_node_reaches_nothing(muster: Deployment, probed: dict[str, Any]) -> None:
    job = {
        **probed,
        "image": "muster/python:latest",
        "pull": "never",
        "files": [{"path": "/tmp/probe.py", "content": PROBE}, {"path": "/tmp/paths", "content": everything(muster)}],
    }
    assert outcome(muster, job) == ["found", "done"]


def test_a_process_reaches_nothing(muster: Deployment, probed: dict[str, Any]) -> None:
    command = [word.replace("/tmp/", "") for word in probed["command"]]
    files = [{"path": "probe.py", "content": PROBE}, {"path": "paths", "content": everything(muster)}]
    assert outcome(muster, {**probed, "command": command, "files": files}) == ["found", "done"]
