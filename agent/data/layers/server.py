"""The registry on loopback from which the node's engine pulls. Whoever has no password of a pull gets nothing."""

import base64
import binascii
import hmac
import json
import re
import socket
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import Any

from agent.data.layers.arriving import LayerFaultError
from agent.data.layers.files import LayerFiles, NoSpaceForLayersError
from agent.data.layers.manifest import ManifestError
from agent.data.layers.pulls import BlobsOfNode, LoopbackPull
from muster.transfer.web_file import FileAwayError, FileRefusedError

LOOPBACK_SILENCE = 60.0
"""Seconds without a byte after which a connection to the registry on loopback is closed."""
MOST_LOOPBACK_CONNECTIONS = 64
"""Connections to the registry on loopback at the same time; further ones are closed at once."""

_WANTED = re.compile(r"/v2/(?P<name>[^?#]+)/(?P<kind>manifests|blobs)/(?P<digest>sha256:[0-9a-f]{64})")
_FROM = re.compile(r"bytes=([0-9]{1,18})-[0-9]*")
_TLS_HELLO = b"\x16"


class LoopbackRegistry(ThreadingHTTPServer):
    """Listens on a port of 127.0.0.1, and gives each pull what it may have."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        """Raises OSError where it cannot listen."""
        super().__init__(("127.0.0.1", 0), _EngineRequest)
        self.blobs = BlobsOfNode()
        self._pulls: dict[str, tuple[LoopbackPull, LayerFiles]] = {}
        self._free = threading.BoundedSemaphore(MOST_LOOPBACK_CONNECTIONS)
        threading.Thread(target=self.serve_forever, name="registry", daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def begin(self, pull: LoopbackPull, files: LayerFiles) -> None:
        """Give a pull what it may have, from here on."""
        self._pulls[pull.user] = (pull, files)

    def end(self, user: str) -> LoopbackPull | None:
        """Give a pull nothing more; None: there is no such pull."""
        pull, _ = self._pulls.pop(user, (None, None))
        if pull is not None:
            self.blobs.leave(pull)
        return pull

    def pull(self, user: str) -> LoopbackPull | None:
        """The pull of a user."""
        return self._pulls.get(user, (None, None))[0]

    def let_in(self, shown: str) -> tuple[LoopbackPull, LayerFiles] | None:
        """The pull that a request shows to be a part of."""
        kind, _, rest = shown.partition(" ")
        try:
            user, _, password = base64.b64decode(rest, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return None
        known = self._pulls.get(user)
        if kind.lower() != "basic" or known is None:
            return None
        return known if hmac.compare_digest(password.encode(), known[0].password.encode()) else None

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the library has it
        """Answer a connection in a thread of its own, unless there are too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the library has it
        """Answer a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: an engine that goes away is nobody's concern."""


class _EngineRequest(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = LOOPBACK_SILENCE
    server: LoopbackRegistry
    _sent_nothing: bool

    def handle(self) -> None:
        """Answer what comes over one connection; an engine tries first whether there is TLS."""
        if self.connection.recv(1, socket.MSG_PEEK) != _TLS_HELLO:
            super().handle()

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Say nothing: headers have passwords."""

    def _answer(self) -> None:
        self._sent_nothing = True
        known = self.server.let_in(self.headers.get("Authorization", ""))
        if known is None:
            self._refuse(HTTPStatus.UNAUTHORIZED, "UNAUTHORIZED", "authentication required")
            return
        if self.path == "/v2/":
            self._give(HTTPStatus.OK, "application/json", 2, iter([b"{}"]))
            return
        pull, files = known
        pull.is_reached = True
        wanted = _WANTED.fullmatch(self.path)
        if wanted is None or wanted["name"] != pull.wanted.source.on_loopback:
            self._refuse(HTTPStatus.NOT_FOUND, "NAME_UNKNOWN", "this pull is for another image")
        elif wanted["kind"] == "manifests":
            self._manifest(pull, wanted["digest"])
        else:
            self._blob(pull, files, wanted["digest"])

    def _manifest(self, pull: LoopbackPull, digest: str) -> None:
        try:
            found = pull.manifest(digest)
        except (ManifestError, FileRefusedError, FileAwayError, NoSpaceForLayersError, OSError) as error:
            self._refuse(HTTPStatus.FORBIDDEN, "DENIED", str(error))
            return
        if found is None:
            self._refuse(HTTPStatus.NOT_FOUND, "MANIFEST_UNKNOWN", "this pull is for another image")
            return
        media_type, content = found
        self._give(HTTPStatus.OK, media_type, len(content), iter([content]), digest)

    def _blob(self, pull: LoopbackPull, files: LayerFiles, digest: str) -> None:
        blob = pull.blobs.get(digest.removeprefix("sha256:"))
        if blob is None:
            self._refuse(HTTPStatus.NOT_FOUND, "BLOB_UNKNOWN", "this pull is for another image")
            return
        if pull.fault:
            self._refuse(HTTPStatus.FORBIDDEN, "DENIED", pull.fault)
            return
        asked = _FROM.fullmatch(self.headers.get("Range", ""))
        offset = int(asked[1]) if asked and int(asked[1]) < blob.size else 0
        if self.command == "HEAD" or not blob.size:
            self._give(HTTPStatus.OK, "application/octet-stream", blob.size, iter(()), digest)
            return
        try:
            chunks = self.server.blobs.chunks(pull, files, blob, offset)
            first = next(chunks)  # what cannot be had at all is said in words
            status = HTTPStatus.PARTIAL_CONTENT if offset else HTTPStatus.OK
            area = f"bytes {offset}-{blob.size - 1}/{blob.size}" if offset else ""
            given = _counted(pull, chain([first], chunks))
            self._give(status, "application/octet-stream", blob.size - offset, given, digest, area)
        except (LayerFaultError, StopIteration, OSError) as error:
            self.close_connection = True
            if isinstance(error, LayerFaultError) and not error.again:
                pull.fault = pull.fault or f"the blob {digest}: {error}"
            if self._sent_nothing:
                self._refuse(HTTPStatus.FORBIDDEN, "DENIED", pull.fault or "it cannot be had now")

    def _give(
        self, status: int, kind: str, length: int, content: Iterator[bytes], digest: str = "", area: str = ""
    ) -> None:
        self._sent_nothing = False
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        if area:
            self.send_header("Content-Range", area)
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="muster"')
        self.end_headers()
        if self.command != "HEAD":
            for data in content:
                self.wfile.write(data)

    def _refuse(self, status: int, code: str, message: str) -> None:
        content = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
        self._give(status, "application/json", len(content), iter([content]))


def _counted(pull: LoopbackPull, chunks: Iterator[bytes]) -> Iterator[bytes]:
    for data in chunks:
        pull.given += len(data)
        yield data
