"""The registry of Debian (`docker-registry`) on loopback, with a login, and what it was asked for."""

import base64
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docker_daemon import request

LOGIN = ("puller", "of the team")
HASHED = "$2b$04$VZX77dmZL2ycdp8Z92Vdj.29xGGsNMrgUczdf3MUYzuy62bv4MbJS"
"""The password as `htpasswd -B` writes it."""
LIMIT = 30.0


class DockerRegistry:
    """A registry that runs."""

    def __init__(self, address: str, log: Path) -> None:
        self.address = address
        self._log = log

    def blobs_given(self) -> list[str]:
        """The digests of the blobs that it gave away, one for each time, in the order of their names."""
        return sorted(each.rpartition("/")[2] for each in self.asked() if "/blobs/" in each)

    def asked(self) -> list[str]:
        """Paths that were asked for and given."""
        said = map(json.loads, filter(lambda line: line.startswith("{"), self._log.read_text().splitlines()))
        return [
            each["http.request.uri"]
            for each in said
            if each.get("http.request.method") == "GET" and each.get("http.response.status") in {200, 206}
        ]


def pushed(engine: Path, name: str, files: Mapping[str, bytes]) -> str:
    """Have an engine import some files as an image and push it with LOGIN; the name with its digest."""
    repository, _, tag = name.rpartition(":")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as written:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            written.addfile(entry, io.BytesIO(content))
    create = f"/images/create?fromSrc=-&repo={repository}&tag={tag}"
    request(engine, "POST", create, archive.getvalue(), {"Content-Type": "application/x-tar"})
    login = json.dumps(dict(zip(("username", "password"), LOGIN, strict=True))).encode()
    shown = {"X-Registry-Auth": base64.urlsafe_b64encode(login).decode()}
    said = request(engine, "POST", f"/images/{repository}/push?tag={tag}", headers=shown).splitlines()
    digests = [news["aux"]["Digest"] for news in map(json.loads, said) if "aux" in news]
    return f"{repository}@{digests[0]}"


@contextmanager
def docker_registry(directory: Path) -> Iterator[DockerRegistry]:
    """A registry that keeps what it has below a directory."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("docker-registry is not installed")
    users, settings, log = directory / "users", directory / "registry.yml", directory / "registry.log"
    users.write_text(f"{LOGIN[0]}:{HASHED}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    settings.write_text(
        json.dumps(
            {
                "version": 0.1,
                "log": {"level": "info", "formatter": "json", "accesslog": {"disabled": True}},
                "storage": {"filesystem": {"rootdirectory": str(directory / "storage")}},
                "http": {"addr": address, "net": "tcp"},
                "auth": {"htpasswd": {"realm": "team", "path": str(users)}},
            }
        )
    )
    with log.open("wb") as written:
        process = subprocess.Popen(
            (program, "serve", settings), stdout=written, stderr=written, env={"PATH": os.environ["PATH"]}
        )
    try:
        _until_it_listens(process, address)
        yield DockerRegistry(address, log)
    finally:
        process.terminate()
        process.wait(LIMIT)


def _until_it_listens(process: subprocess.Popen[bytes], address: str) -> None:
    host, _, port = address.rpartition(":")
    while process.poll() is None:
        try:
            with socket.create_connection((host, int(port)), LIMIT):
                return
        except ConnectionRefusedError:
            continue
    raise RuntimeError("docker-registry has ended")
