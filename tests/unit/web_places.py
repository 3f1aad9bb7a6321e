"""A server of files with the faults that servers have, on a loopback address."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class WebPlace:
    """What a server has, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """ETags by path; a path without one says nothing of its version."""
    redirects: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, list[int]] = field(default_factory=dict)
    """Statuses that a path answers with before it gives its file."""
    cuts: dict[str, list[int]] = field(default_factory=dict)
    """After how many bytes answers of a path break off."""
    unsized: set[str] = field(default_factory=set)
    """Paths that do not say how long their files are."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Path and range of each request."""
    keys: dict[str, str] = field(default_factory=dict)
    """What the header `Authorization` must say, by path; to others a path without one is open."""
    shown: list[str] = field(default_factory=list)
    """What that header has said in each request."""
    sent: int = 0
    """Bytes of all files."""
    url: str = ""
    counting: threading.Lock = field(default_factory=threading.Lock)


class _Handler(BaseHTTPRequestHandler):
    place: WebPlace

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.place.asked.append((path, self.headers.get("Range", "")))
        self.place.shown.append(self.headers.get("Authorization", ""))
        if self.place.keys.get(path, self.place.shown[-1]) != self.place.shown[-1]:
            self.send_error(401)
            return
        if self.place.statuses.get(path):
            self.send_error(self.place.statuses[path].pop(0))
            return
        if path in self.place.redirects:
            self.send_response(302)
            self.send_header("Location", self.place.redirects[path])
            self.end_headers()
            return
        if path not in self.place.files:
            self.send_error(404)
            return
        self._give(path)

    def _give(self, path: str) -> None:
        whole, version = self.place.files[path], self.place.versions.get(path, "")
        wanted, _, last = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        if version and self.headers.get("If-None-Match") == version:
            self.send_response(304)
            self.end_headers()
            return
        same = self.headers.get("If-Range", version if last else "") == version
        offset = int(wanted) if wanted and same else 0
        end = int(last) + 1 if last and same else len(whole)
        self.send_response(206 if offset or end < len(whole) else 200)
        if version:
            self.send_header("ETag", version)
        if offset or end < len(whole):
            self.send_header("Content-Range", f"bytes {offset}-{end - 1}/{len(whole)}")
        if path not in self.place.unsized:
            self.send_header("Content-Length", str(end - offset))
        self.end_headers()
        cut = self.place.cuts[path].pop(0) if self.place.cuts.get(path) else len(whole)
        with self.place.counting:
            self.place.sent += len(whole[offset : min(end, offset + cut)])
        self.wfile.write(whole[offset : min(end, offset + cut)])


@contextmanager
def web_place(context: ssl.SSLContext | None = None) -> Iterator[WebPlace]:
    """A server for as long as this lasts, which speaks TLS where it has a certificate."""
    place = WebPlace()
    handler = type("Handler", (_Handler,), {"place": place})

    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    place.url = f"http{'s' * (context is not None)}://127.0.0.1:{server.server_address[1]}"
    try:
        yield place
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
