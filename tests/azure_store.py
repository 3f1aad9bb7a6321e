"""A real server that speaks as the blobs of Azure do (azurite from npm), and what a test puts there."""

import hmac
import http.client
import os
import re
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

from coordinator.clock import wall_time
from tests.integration.npm_packages import installed, node

SOURCE = Path(__file__).parent / "blob_store"
ACCOUNT, CONTAINER = "acmedata", "acme"
KEY = b64encode(b"a key of the account of tests, of 64 bytes as those of Azure are").decode()
_VERSION = "2021-08-06"


class AzureServer:
    """One account with the container `acme`."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        self._port = port

    def put(self, name: str, content: bytes) -> None:
        """Have a blob."""
        self.ask("PUT", f"/{CONTAINER}/{quote(name)}", content=content, blob="BlockBlob")

    def get(self, name: str) -> bytes:
        """What a blob holds."""
        return self.ask("GET", f"/{CONTAINER}/{quote(name)}")

    def make_container(self, name: str) -> None:
        """Have a container."""
        self.ask("PUT", f"/{name}", "restype=container")

    def signature(self) -> str:
        """What lets whoever has it look at the container and read it."""
        start, end = (_moment(wall_time() + timedelta(hours=hours)) for hours in (-1, 1))
        place = f"/blob/{ACCOUNT}/{CONTAINER}"
        signed = f"rl\n{start}\n{end}\n{place}\n\n\n\n{_VERSION}\nc\n\n\n\n\n\n\n"
        said = {"sp": "rl", "st": start, "se": end, "sv": _VERSION, "sr": "c", "sig": _signed(signed)}
        return f"?{urlencode(said)}"

    def ask(self, verb: str, path: str, query: str = "", content: bytes = b"", blob: str = "") -> bytes:
        """What the server answers to a question that the key of the account opens."""
        said = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        said |= {"x-ms-blob-type": blob} if blob else {}
        headers = "".join(f"{name}:{value}\n" for name, value in sorted(said.items()))
        asked = "".join(f"\n{name}:{value}" for name, value in sorted(parse_qsl(query)))
        length = str(len(content) or "")
        text = f"{verb}\n\n\n{length}\n\n\n\n\n\n\n\n\n{headers}/{ACCOUNT}/{ACCOUNT}{path}{asked}"
        shown = {"Authorization": f"SharedKey {ACCOUNT}:{_signed(text)}", "Content-Length": str(len(content))}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        try:
            connection.request(verb, f"/{ACCOUNT}{path}{'?' * bool(query)}{query}", content, {**said, **shown})
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status < 300, (verb, path, answer.status, body)
            return body
        finally:
            connection.close()


@contextmanager
def azure_store() -> Iterator[AzureServer]:
    """A server with one container, for as long as this lasts; skips the test where there is no Node.js."""
    program = installed(SOURCE) / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    place = ["--blobHost", "127.0.0.1", "--blobPort", "0"]
    command = [node(), str(program), "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", *place]
    own = {"PATH": os.environ["PATH"], "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=own) as server:
        assert server.stdout is not None
        try:
            store = AzureServer(_port(server.stdout.readline() for _ in range(10)))
            store.make_container(CONTAINER)
            yield store
        finally:
            server.kill()


def _port(lines: Iterator[bytes]) -> int:
    for line in lines:
        if found := re.search(rb"listens on http://127\.0\.0\.1:(\d+)", line):
            return int(found[1])
    raise AssertionError("azurite did not start; run it by hand")


def _signed(text: str) -> str:
    return b64encode(hmac.digest(b64decode(KEY), text.encode(), "sha256")).decode()


def _moment(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
