"""A private Docker daemon for tests: own data, own bridge, no firewall rules, gone at the end.

`MUSTER_TEST_DOCKER` (a socket path) names a daemon to use instead. Elsewhere than as root with dockerd installed the
tests that need one are skipped, and say why.
"""

import contextlib
import http.client
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

IMAGE = "muster-test/busybox:1"
"""Static busybox with links for all its programs in /bin; the image that `docker_socket` provides."""

READY_WITHIN = 30.0
"""Seconds until a daemon must answer."""

BUSYBOX = Path("/bin/busybox")


@pytest.fixture(scope="session")
def docker_socket() -> Iterator[Path]:
    """The socket of a Docker daemon that has IMAGE."""
    given = os.environ.get("MUSTER_TEST_DOCKER")
    if given:
        import_busybox(Path(given))
        yield Path(given)
        return
    reason = why_no_daemon()
    if reason:
        pytest.skip(reason)
    with daemon() as private:
        import_busybox(private.socket)
        yield private.socket


def why_no_daemon() -> str | None:
    """What is missing to start a private daemon; None: nothing."""
    if os.geteuid() != 0:
        return "a private dockerd needs root; name a daemon's socket in MUSTER_TEST_DOCKER instead"
    if not (shutil.which("dockerd") and shutil.which("ip")):
        return "dockerd or ip is not installed, and MUSTER_TEST_DOCKER names no other daemon"
    if not BUSYBOX.exists():
        return "busybox-static is not installed; the test image is made of it"
    return None


class PrivateDaemon:
    """A dockerd that belongs to the caller, who may stop and start it again."""

    def __init__(self, root: Path, options: Sequence[str], *, gpu_hook: bool) -> None:
        self.socket = root / "docker.sock"
        self._root = root
        self._gpu_hook = gpu_hook
        self._command = (
            "dockerd",
            *("-H", f"unix://{self.socket}"),
            *("--data-root", str(root / "data")),
            *("--exec-root", str(root / "exec")),
            *("--pidfile", str(root / "docker.pid")),
            # No firewall rules: the node's own stay as they are, and published ports work through docker-proxy.
            *("--iptables=false", "--ip6tables=false", "--ip-masq=false", "--ip-forward=false"),
            *options,
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self._root / "dockerd.log").open("ab") as log:
            # Own process group: Ctrl-C at the terminal must not reach it before the tests are done with it.
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env=self._environment(), process_group=0
            )
        deadline = time.monotonic() + READY_WITHIN
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("dockerd does not start:\n" + (self._root / "dockerd.log").read_text()[-3000:])
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop it and wait until it is gone."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def kill(self) -> None:
        """End it and its containerd without a word; containers go on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None
            self.kill_containerd()
            self._containerd.unlink()  # the next dockerd would wait for one that nobody buries

    def kill_containerd(self) -> None:
        """End its containerd without a word; it starts another in some ten seconds."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(self._containerd.read_text()), signal.SIGKILL)

    def kill_watcher(self, container: str) -> None:
        """End the program that stands between containerd and a container, and knows how that ends."""
        for pid, command in _commands():
            if b"containerd-shim" in command and container.encode() in command:
                os.kill(pid, signal.SIGKILL)

    def forget_containers(self) -> None:
        """End it and all that knows how its containers end, as a machine does that loses its power."""
        self.kill()
        _kill_survivors(self._root)
        shutil.rmtree(self._root / "exec", ignore_errors=True)

    def lose_end(self, container: str) -> None:
        """End it as one ends that is killed before it notes how a container ended that containerd has forgotten.

        The container must have ended since `kill`.
        """
        directory = self._containerd.parent
        address = directory / "containerd.sock"
        with (self._root / "containerd.log").open("ab") as log:
            containerd = subprocess.Popen(
                ("containerd", "--config", str(directory / "containerd.toml")), stdout=log, stderr=log, process_group=0
            )
        try:
            deadline = time.monotonic() + READY_WITHIN
            while not _containerd_answers(address):
                if time.monotonic() > deadline:
                    raise AssertionError("containerd does not start:\n" + (self._root / "containerd.log").read_text())
                time.sleep(0.02)
            for what in ("tasks", "containers"):
                _ctr(address, what, "rm", container)
        finally:
            containerd.kill()
            containerd.wait(30)

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """Take connections, and do not answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    @property
    def _containerd(self) -> Path:
        """The file with the process id of its containerd."""
        return self._root / "exec/containerd/containerd.pid"

    def _environment(self) -> dict[str, str]:
        """Variables with a stand-in for NVIDIA's hook in PATH, so that dockerd accepts requests for GPUs."""
        if not self._gpu_hook:
            return dict(os.environ)
        programs = self._root / "programs"
        programs.mkdir(exist_ok=True)
        hook = programs / "nvidia-container-runtime-hook"
        hook.write_text("#!/bin/sh\nexit 0\n")
        hook.chmod(0o755)
        return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def _answers(self) -> bool:
        try:
            return request(self.socket, "GET", "/_ping") == b"OK"
        except OSError:
            return False


@contextlib.contextmanager
def daemon(*options: str, gpu_hook: bool = True) -> Iterator[PrivateDaemon]:
    """A running private daemon; everything of it is gone afterwards. `gpu_hook`: whether it accepts GPU requests."""
    name = f"mdt{os.getpid()}-{next(_numbers)}"[:15]  # the kernel's limit
    # A directory of short name: socket paths are limited to 108 bytes.
    root = Path(tempfile.mkdtemp(prefix="muster-docker-"))
    with _bridge(name):
        private = PrivateDaemon(root, (f"--bridge={name}", *options), gpu_hook=gpu_hook)
        try:
            private.start()
            yield private
        finally:
            with contextlib.suppress(OSError):
                remove_containers(private.socket)
            private.stop()
            _kill_survivors(root)
            _unmount(root)
            shutil.rmtree(root, ignore_errors=True)


_numbers = iter(range(1000))


@contextlib.contextmanager
def _bridge(name: str) -> Iterator[None]:
    subnet = zlib.crc32(name.encode()) % 250
    _ip("link", "add", name, "type", "bridge")
    try:
        _ip("addr", "add", f"172.29.{subnet}.1/24", "dev", name)
        _ip("link", "set", name, "up")
        yield
    finally:
        _ip("link", "del", name)


def _ip(*arguments: str) -> None:
    subprocess.run(("ip", *arguments), check=True, capture_output=True, timeout=10)


def _ctr(address: Path, *arguments: str) -> None:
    command = ("ctr", "--address", str(address), "--namespace", "moby", *arguments)
    subprocess.run(command, check=True, capture_output=True, timeout=30)


def _containerd_answers(address: Path) -> bool:
    try:
        _ctr(address, "version")
    except subprocess.CalledProcessError:
        return False
    return True


def _commands() -> Iterator[tuple[int, bytes]]:
    """The process id and the command line of everything that runs here."""
    for directory in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if directory.name.isdigit():
                yield int(directory.name), (directory / "cmdline").read_bytes()


def _kill_survivors(root: Path) -> None:
    """Kill containers that could not be removed, and what watches them: with live restore they outlive the daemon."""
    for pid, command in _commands():
        with contextlib.suppress(OSError):
            if str(root).encode() in command:
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                for each in (*map(int, children), pid):
                    os.kill(each, signal.SIGKILL)


def _unmount(root: Path) -> None:
    """Docker leaves the mounts of its network namespaces behind."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in reversed([mount for mount in mounts if Path(mount).is_relative_to(root)]):
        subprocess.run(("umount", "-l", mount), check=True, capture_output=True, timeout=10)


def import_busybox(
    socket_path: Path,
    name: str = IMAGE,
    config: Mapping[str, Any] | None = None,
    links: Mapping[str, str] | None = None,
) -> None:
    """Make an image of busybox; `config` holds lines of a Dockerfile like `{"USER": "app"}`, `links` more links."""
    repository, _, tag = name.partition(":")
    changes = "".join(
        f"&changes={_quoted(f'{key} {value}')}" for key, value in {"ENV": "PATH=/bin", **(config or {})}.items()
    )
    request(
        socket_path,
        "POST",
        f"/images/create?fromSrc=-&repo={_quoted(repository)}&tag={tag}{changes}",
        _busybox_archive(links or {}),
        {"Content-Type": "application/x-tar"},
    )


def _busybox_archive(links: Mapping[str, str]) -> bytes:
    """A root file system: busybox, links to it, a user `app` and a world-writable /tmp."""
    programs = subprocess.run(
        (BUSYBOX, "--list"), check=True, capture_output=True, text=True, timeout=10
    ).stdout.split()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(BUSYBOX, "bin/busybox")
        to_busybox = {f"bin/{program}": "busybox" for program in programs if program != "busybox"}
        for name, target in {**to_busybox, **links}.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
        passwd = b"root:x:0:0:root:/:/bin/sh\napp:x:1000:1000:app:/:/bin/sh\n"
        entry = tarfile.TarInfo("etc/passwd")
        entry.size = len(passwd)
        archive.addfile(entry, io.BytesIO(passwd))
        tmp = tarfile.TarInfo("tmp")
        tmp.type, tmp.mode = tarfile.DIRTYPE, 0o1777
        archive.addfile(tmp)
    return buffer.getvalue()


def containers(socket_path: Path, *labels: str) -> list[dict[str, Any]]:
    """Every container, running or not, that carries all the labels."""
    listed = request(socket_path, "GET", f"/containers/json?all=1&filters={_quoted(json.dumps({'label': labels}))}")
    found: list[dict[str, Any]] = json.loads(listed)
    return found


def inspected(socket_path: Path, container: str) -> dict[str, Any]:
    """What Docker says about a container."""
    found: dict[str, Any] = json.loads(request(socket_path, "GET", f"/containers/{container}/json"))
    return found


def remove_containers(socket_path: Path, *labels: str) -> None:
    """Remove containers by force, with their anonymous volumes."""
    for container in containers(socket_path, *labels):
        request(socket_path, "DELETE", f"/containers/{container['Id']}?force=1&v=1")


def request(
    socket_path: Path, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """One request to a Docker daemon, apart from the client library that the product uses; raises OSError."""
    connection = http.client.HTTPConnection("localhost", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.settimeout(60)
        connection.sock.connect(str(socket_path))
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= http.client.BAD_REQUEST:
            raise OSError(f"{method} {path}: {answer.status} {content.decode(errors='replace')}")
        return content
    finally:
        connection.close()


def _quoted(text: str) -> str:
    return quote(text, safe="")
