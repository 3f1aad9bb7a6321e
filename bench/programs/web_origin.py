"""A web server that gives one file under every path below /files/, with ranges; another path is another version of it.

Arguments: the file, where to write the address, bytes per second for all connections together (0: no limit). `/given`
says how many bytes of files it has given.
"""

import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

STEP = 256 * 1024
"""Bytes that one connection gives before others may."""
HTTP_OK, HTTP_PART, HTTP_SAME = 200, 206, 304
RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class Line:
    """The line of the server: one for all connections, of so many bytes per second."""

    def __init__(self, rate: int) -> None:
        self.given = 0
        self._rate = rate
        self._free_at = 0.0
        self._lock = threading.Lock()

    def pass_on(self, count: int) -> None:
        """Wait until so many bytes may go."""
        with self._lock:
            self.given += count
            if not self._rate:
                return
            now = time.monotonic()
            self._free_at = max(now, self._free_at) + count / self._rate
            wait = self._free_at - now
        time.sleep(wait)


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    file: Path
    line: Line

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Tell size and version."""
        self._answer(whole=False)

    def do_GET(self) -> None:
        """Give the file, a part of it, or how much was given."""
        if self.path == "/given":
            said = str(self.line.given).encode()
            self.send_response(HTTP_OK)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)
            return
        self._answer(whole=True)

    def _answer(self, *, whole: bool) -> None:
        size, version = self.file.stat().st_size, f'"{self.path}"'
        if self.headers.get("If-None-Match") == version:
            self.send_response(HTTP_SAME)
            self.end_headers()
            return
        asked = RANGE.fullmatch(self.headers.get("Range", ""))
        if asked is None or self.headers.get("If-Range", version) != version:
            first, end = 0, size
            self.send_response(HTTP_OK)
        else:
            first, end = int(asked[1]), min(size, int(asked[2] or size - 1) + 1)
            self.send_response(HTTP_PART)
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{size}")
        self.send_header("ETag", version)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - first))
        self.end_headers()
        if whole:
            self._give(first, end)

    def _give(self, first: int, end: int) -> None:
        self.wfile.flush()
        with self.file.open("rb") as file:
            while first < end:
                self.line.pass_on(min(STEP, end - first))
                sent = os.sendfile(self.connection.fileno(), file.fileno(), first, min(STEP, end - first))
                self.line.given -= min(STEP, end - first) - sent
                first += sent


def main() -> None:
    """Serve until told to end."""
    file, ready, rate = sys.argv[1:]
    handler = type("GivingHandler", (Handler,), {"file": Path(file), "line": Line(int(rate))})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    fresh = Path(f"{ready}.new")
    fresh.write_text(f"http://127.0.0.1:{server.server_address[1]}", encoding="utf-8")
    fresh.replace(ready)
    server.serve_forever()


if __name__ == "__main__":
    main()
