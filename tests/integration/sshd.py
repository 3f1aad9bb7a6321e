"""Real SSH servers on loopback, with keys of their own; they let in who runs the tests."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from muster.bootstrap.ssh.known_hosts import HostKey
from tests.e2e.programs import Program
from tests.e2e.waiting import until

PROGRAM = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")


@dataclass(frozen=True, kw_only=True)
class Sshd:
    """One of them."""

    port: int
    key: Path
    """The private key that it lets in."""
    host_key: HostKey


@contextmanager
def sshd(directory: Path, *, passphrase: str = "", host_key: Path | None = None, port: int = 0) -> Iterator[Sshd]:
    """Serve until the context ends; `passphrase` is that of the key which it lets in."""
    assert PROGRAM is not None
    directory.mkdir()
    server, user = host_key or make_key(directory / "host"), make_key(directory / "user", passphrase)
    port = port or _free_port()
    Path("/run/sshd").mkdir(exist_ok=True)  # where it drops its rights to
    config = directory / "sshd_config"
    lines = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": server,
        "AuthorizedKeysFile": user.with_suffix(".pub"),
        "PidFile": directory / "pid",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "UsePAM": "no",
        "StrictModes": "no",
        "PermitRootLogin": "prohibit-password",
    }
    config.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
    program = Program("sshd", [PROGRAM, "-D", "-e", "-f", str(config)], log=directory / "log")
    try:
        until(lambda: _answers(program, port), within=10, what="sshd")
        kind, key = server.with_suffix(".pub").read_text().split()[:2]
        yield Sshd(port=port, key=user, host_key=HostKey(name=f"[127.0.0.1]:{port}", kind=kind, key=key))
    finally:
        program.stop()


def make_key(path: Path, passphrase: str = "") -> Path:
    """A private key; its public half is beside it."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "test", "-f", str(path)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return path


def _answers(program: Program, port: int) -> bool:
    program.check()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
