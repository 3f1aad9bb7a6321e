"""A registry of container images for tests: serves what was offered last by any tag, all of it by digests."""

import base64
import gzip
import hashlib
import io
import json
import random
import re
import tarfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CHUNK = 1 << 18


class Registry:
    """What is served, under which address, and how often it was asked about it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.asked = 0
        self.blobs: dict[str, bytes] = {}
        self.given: Counter[str] = Counter()
        """Bytes of each blob that it has given."""
        self.manifests: dict[str, bytes] = {}
        """What was offered, by digest."""
        self.manifest = b""
        """What every tag means."""
        self.login: tuple[str, str] | None = None
        """Name and password that it wants to be shown; None: it lets everybody in."""
        self.token = ""
        """What it gives to those whom it lets in, and wants to be shown by them then; empty: it gives no tokens."""

    def lets_in(self, shown: str) -> bool:
        """Whether what a request shows of itself is enough."""
        return shown == f"Bearer {self.token}" if self.token else self.knows(shown)

    def knows(self, shown: str) -> bool:
        """Whether a request shows the login."""
        if self.login is None:
            return True
        return shown == f"Basic {base64.b64encode(':'.join(self.login).encode()).decode()}"

    def offer(self, content: bytes, architecture: str = "amd64", noise: int = 0) -> str:
        """Have every tag mean an image with one file `/content`, and `noise` bytes that cannot be compressed.

        Its digest.
        """
        files = {"content": content, "noise": random.Random(1).randbytes(noise)}
        return self.offer_files(files, architecture=architecture)

    def offer_layers(self, *sizes: int) -> str:
        """Have every tag mean an image with layers of at least so many bytes; its digest."""
        noise = [{f"noise-{place}": random.Random(place).randbytes(size)} for place, size in enumerate(sizes)]
        return self.offer_files(*noise)

    def offer_files(self, *layers: Mapping[str, bytes], architecture: str = "amd64") -> str:
        """Have every tag mean an image of such layers, each with files by their paths; its digest."""
        unpacked = [_layer(each) for each in layers]
        packed = [gzip.compress(layer, compresslevel=1) for layer in unpacked]
        config = json.dumps(
            {
                "architecture": architecture,
                "os": "linux",
                "config": {"Cmd": ["/content"]},
                "rootfs": {"type": "layers", "diff_ids": list(map(_digest, unpacked))},
            }
        ).encode()
        self.blobs |= {_digest(blob): blob for blob in (*packed, config)}
        self.manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": _described("application/vnd.docker.container.image.v1+json", config),
                "layers": [_described("application/vnd.docker.image.rootfs.diff.tar.gzip", each) for each in packed],
            }
        ).encode()
        digest = _digest(self.manifest)
        self.manifests[digest] = self.manifest
        return digest


@contextmanager
def registry() -> Iterator[Registry]:
    """A registry on loopback, where Docker wants no TLS; it has nothing until something is offered."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    served = Registry(f"127.0.0.1:{server.server_address[1]}")
    server.served = served  # type: ignore[attr-defined]  # what handlers serve goes along with the server
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="registry")
    serving.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""

    def _answer(self, *, body: bool) -> None:
        served: Registry = self.server.served  # type: ignore[attr-defined]  # what handlers serve goes along with the server
        shown = self.headers.get("Authorization", "")
        asks = self.path.startswith("/token?")
        known = served.knows(shown) if asks else served.lets_in(shown)
        status, kind, content = self._found() if known else (401, "application/json", _REFUSED)
        total, part = len(content), _PART.fullmatch(self.headers.get("Range", ""))
        if known and part and kind == "application/octet-stream":
            status, content = 206, content[int(part[1]) : int(part[2]) + 1]
        self.send_response(status)
        if part and status == 206:
            self.send_header("Content-Range", f"bytes {part[1]}-{part[2]}/{total}")
        if not known:
            token = f'Bearer realm="http://{served.address}/token",service="team"'
            self.send_header("WWW-Authenticate", token if served.token and not asks else 'Basic realm="team"')
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if kind == MANIFEST:
            self.send_header("Docker-Content-Digest", _digest(content))
        self.end_headers()
        if body:
            for start in range(0, len(content), CHUNK):
                self.wfile.write(content[start : start + CHUNK])
            if known and kind == "application/octet-stream":
                served.given[self.path.rpartition("/")[2]] += len(content)

    def _found(self) -> tuple[int, str, bytes]:
        served: Registry = self.server.served  # type: ignore[attr-defined]  # what handlers serve goes along with the server
        if self.path == "/v2/":
            return 200, "application/json", b"{}"
        if self.path == "/token?scope=repository%3Ateam%2Fapp%3Apull&service=team":
            return 200, "application/json", json.dumps({"token": served.token}).encode()
        name = self.path.rpartition("/")[2]
        served.asked += "/manifests/" in self.path
        if "/manifests/" in self.path:
            manifest = served.manifests.get(name, b"" if name.startswith("sha256:") else served.manifest)
            if manifest:
                return 200, MANIFEST, manifest
        if name in served.blobs:
            return 200, "application/octet-stream", served.blobs[name]
        error = {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}
        return 404, "application/json", json.dumps(error).encode()


_PART = re.compile(r"bytes=([0-9]+)-([0-9]+)")
_REFUSED = json.dumps({"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}).encode()


def _layer(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _described(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "size": len(content), "digest": _digest(content)}
