"""A store that takes objects over S3, at once or in parts, from anybody, and keeps nothing of them.

Argument: where to write the address.
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

STEP = 1024 * 1024
BEGUN = b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
WHOLE = b'<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>'


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Say nothing."""

    def do_PUT(self) -> None:
        """Take an object, or a part of one."""
        self._take()
        self._say(b"")

    def do_POST(self) -> None:
        """Begin an object that comes in parts, or end it."""
        self._take()
        self._say(BEGUN if "uploads" in parse_qs(urlsplit(self.path).query, keep_blank_values=True) else WHOLE)

    def do_DELETE(self) -> None:
        """Forget parts, of which nothing was kept."""
        self.send_response(204)
        self.end_headers()

    def _take(self) -> None:
        left, room = int(self.headers.get("Content-Length", "0")), memoryview(bytearray(STEP))
        while left:
            found = self.rfile.readinto(room[: min(left, STEP)])
            if not found:
                self.close_connection = True
                return
            left -= found

    def _say(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("ETag", '"whole"')
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until told to end."""
    ready = sys.argv[1]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    fresh = Path(f"{ready}.new")
    fresh.write_text(f"http://127.0.0.1:{server.server_address[1]}", encoding="utf-8")
    fresh.replace(ready)
    threading.Event().wait()


if __name__ == "__main__":
    main()
