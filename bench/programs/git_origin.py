"""A Git server over HTTPS, which is git's own `http-backend`, that counts how often a commit is fetched.

Arguments: the directory of repositories, the certificate with its key, where to write the address. `/fetches` says how
many questions for commits it has answered.
"""

import os
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

WITHIN = 60.0
"""Seconds that git may take for an answer."""
WANTED = b"want "
"""What stands in a question for a commit, in every version of the protocol, and in no question for names."""


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    root: str
    fetched: list[str]
    """The repository of each question for a commit."""

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 - as the base class has it
        """Say nothing."""

    def do_GET(self) -> None:
        """Tell the names of a repository, or how much was fetched."""
        if self.path == "/fetches":
            self._say(200, {}, str(len(self.fetched)).encode())
        else:
            self._ask_git(b"")

    def do_POST(self) -> None:
        """Give what is asked for."""
        body = self._body()
        if WANTED in body:
            self.fetched.append(self.path)
        self._ask_git(body)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _ask_git(self, body: bytes) -> None:
        url = urlsplit(self.path)
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": self.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": url.path,
            "QUERY_STRING": url.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, check=False, capture_output=True, timeout=WITHIN
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self._say(int(headers.pop("Status", "200 OK").split()[0]), headers, content)

    def _say(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main() -> None:
    """Serve until told to end."""
    root, certificate, ready = sys.argv[1:]
    handler = type("ServingHandler", (Handler,), {"root": root, "fetched": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    fresh = Path(f"{ready}.new")
    fresh.write_text(f"https://127.0.0.1:{server.server_address[1]}", encoding="utf-8")
    fresh.replace(ready)
    threading.Event().wait()


if __name__ == "__main__":
    main()
