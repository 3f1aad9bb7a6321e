"""The registry from which an image comes, asked with what its project shows to it. Blocks; made for threads."""

import json
import re
from pathlib import Path
from threading import Lock
from urllib.parse import urlencode, urlsplit

from agent.data.layers.manifest import LONGEST_IMAGE_MANIFEST, MANIFEST_ACCEPT
from agent.data.layers.messages import ImageSource
from muster.transfer.web_access import WebAccess, web_access
from muster.transfer.web_file import FileDeniedError, FileRefusedError, PartHere, WebFile

REGISTRY_PATIENCE = 30.0
"""Seconds without a byte of a registry."""

_CERTIFICATES = Path("/etc/docker/certs.d")
_LONGEST_TOKEN, _LONGEST_AUTHORITY = 64 * 1024, 256 * 1024
_TOKEN = re.compile(r"[\x21-\x7e]+")
_PAIR = re.compile(r'([a-z_]+)="([^"]*)"')
_OPEN = WebAccess()


class RegistryUpstream:
    """One image of a registry."""

    def __init__(self, source: ImageSource, certificates: Path = _CERTIFICATES) -> None:
        """`certificates`: where Docker is told of the authorities of registries."""
        self._source = source
        self._authority = _authority(certificates / source.host)
        self._lock = Lock()
        self._shown = _OPEN

    def manifest(self, reference: str) -> bytes:
        """A manifest by tag or digest. Raises FileRefusedError or FileAwayError."""
        with self._opened(f"manifests/{reference}", PartHere(accept=MANIFEST_ACCEPT)) as file:
            return _whole(file, LONGEST_IMAGE_MANIFEST)

    def blob(self, digest: str, start: int, end: int) -> WebFile:
        """A blob from one byte to before another one, or more of it. Raises as above."""
        return self._opened(f"blobs/sha256:{digest}", PartHere(offset=start, end=end))

    def _opened(self, what: str, part: PartHere) -> WebFile:
        url = f"{self._source.server}/v2/{self._source.path}/{what}"
        shown = self._shown
        try:
            return WebFile(url, part, REGISTRY_PATIENCE, self._trusting(shown))
        except FileDeniedError as error:
            if not error.challenge:
                raise
            return WebFile(url, part, REGISTRY_PATIENCE, self._answering(error, shown))

    def _answering(self, denied: FileDeniedError, before: WebAccess) -> WebAccess:
        """What a registry wants to be shown; raises FileRefusedError or FileAwayError."""
        with self._lock:
            if self._shown is before:  # else another thread has just found it out
                kind, _, rest = denied.challenge.partition(" ")
                if kind.lower() == "bearer":
                    self._shown = self._with_token(dict(_PAIR.findall(rest)))
                elif kind.lower() == "basic" and self._source.username:
                    self._shown = self._login(self._source.server)
                else:
                    raise denied
            return self._shown

    def _with_token(self, said: dict[str, str]) -> WebAccess:
        """What a registry gives a token for, from where it says; raises as above."""
        realm = said.get("realm", "")
        if not realm.startswith("https://") and not self._source.server.startswith("http://"):
            raise FileRefusedError(f"{self._source.host} wants a token from {realm[:200]!r}, which is no https:// URL")
        query = {"scope": f"repository:{self._source.path}:pull"} | {k: v for k, v in said.items() if k == "service"}
        url = f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}"
        parts = urlsplit(realm)
        access = self._login(f"{parts.scheme}://{parts.netloc}") if self._source.username else _OPEN
        with WebFile(url, PartHere(accept="application/json"), REGISTRY_PATIENCE, self._trusting(access)) as file:
            content = _whole(file, _LONGEST_TOKEN)
        try:
            answer = json.loads(content)
            token = answer.get("token") or answer["access_token"]
        except (ValueError, KeyError, AttributeError):
            token = None
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise FileRefusedError(f"{parts.netloc} gives no token for {self._source.host}")
        return self._for(self._source.server, {"token": token.encode()})

    def _login(self, server: str) -> WebAccess:
        source = self._source
        return self._for(server, {"username": source.username.encode(), "password": source.password.encode()})

    def _for(self, server: str, shown: dict[str, bytes]) -> WebAccess:
        values = {"server": server.encode(), "ca": self._authority.encode()} | shown
        return web_access(f"the login for {self._source.host}", values)

    def _trusting(self, access: WebAccess) -> WebAccess:
        """The same, with the authority of the registry where there is nothing to be shown."""
        if access.secret or not self._authority:
            return access
        return WebAccess(secret=self._source.host, server=self._source.server, ca=self._authority)


def _whole(file: WebFile, most: int) -> bytes:
    """All of something small; raises FileRefusedError or FileAwayError."""
    found = bytearray()
    while data := file.read():
        found += data
        if len(found) > most:
            raise FileRefusedError(f"{urlsplit(file.url).netloc} gives more than {most} bytes of what must be small")
    return bytes(found)


def _authority(directory: Path) -> str:
    """The certificates of the authorities that an operator has given Docker for a registry, as PEM."""
    try:
        found = [path.read_text(encoding="ascii") for path in sorted(directory.glob("*.crt"))]
    except (OSError, UnicodeDecodeError):
        return ""
    return "\n".join(found) if sum(map(len, found)) <= _LONGEST_AUTHORITY else ""
