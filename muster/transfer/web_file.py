"""A file behind an http:// or https:// URL, read from where one has it already. Blocks; made for threads.

Nothing of the node goes along: no cookies, no credentials, no proxy. A secret is shown to its own server alone, and no
more once that has led on to another one. Addresses of the link itself, at which clouds give credentials to whoever
asks, are refused, wherever a redirection leads.
"""

import http.client
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self
from urllib.parse import urljoin, urlsplit

from muster.domain.data.job_input import without_query
from muster.domain.errors import MusterError
from muster.transfer.addresses import is_of_link, leads_to_link
from muster.transfer.web_access import WebAccess, WebAccessError

REDIRECTIONS = 5
"""How often a server may name another place."""
CONNECT_LIMIT = 10.0
"""Seconds for a connection."""
FILE_READ = 1024 * 1024
"""Bytes that are read at once."""
LONGEST_VERSION = 256
"""Characters of what a server calls a version; of a longer one nothing is kept."""

_REDIRECTED = frozenset({301, 302, 303, 307, 308})
_LATER = frozenset({408, 421, 425, 429})
_WHOLE, _PART, _UNCHANGED, _NOT_THERE = 200, 206, 304, 416
_DENIED = frozenset({401, 403, 407})
_GONE = frozenset({404, 410})


class FileRefusedError(MusterError):
    """The file cannot be had, however often one asks; says why."""


class FileDeniedError(FileRefusedError):
    """A server lets nobody in who shows what it was shown."""

    def __init__(self, text: str, challenge: str) -> None:
        super().__init__(text)
        self.challenge = challenge
        """What the server wants to be shown, in its own words; perhaps empty."""


class FileAwayError(MusterError):
    """The file cannot be had now; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartHere:
    """What one has of a file."""

    offset: int = 0
    """Bytes from its beginning."""
    version: str = ""
    """The version of which these are."""
    whole: str = ""
    """A version that one has whole; empty: none."""
    end: int | None = None
    """Where the part ends that is wanted; None: all that comes after is."""
    accept: str = "*/*"
    """The forms in which it is taken, as the header says them."""


_NOTHING, _OPEN = PartHere(), WebAccess()


class WebFile:
    """One answer of a server. `size` and `version` are what it says of the whole file."""

    def __init__(self, url: str, here: PartHere = _NOTHING, patience: float = 60.0, access: WebAccess = _OPEN) -> None:
        """Ask for what comes after what is here, if the file still is that version; else for all of it.

        Where it still is the version that is here whole, nothing comes, and `unchanged` says so.
        Where only a part is wanted, `is_part` says whether the server gives that and nothing else.
        `patience`: seconds without a byte. Raises FileRefusedError or FileAwayError.
        """
        self.url = url
        self._access = access
        self._connection: http.client.HTTPConnection | None = None
        self._given: http.client.HTTPResponse | None = None
        self._socket: socket.socket | None = None
        self._patience = patience
        try:
            self._answer = self._asked(here)
            self.unchanged = self._answer.status == _UNCHANGED
            self.is_part = self._answer.status == _PART
            self.offset = self._place(here.offset)
            """Where in the file the bytes begin that `read` gives."""
            self.size = self._size()
            """Bytes of the whole file; None: the server does not say."""
            self.version = self._version()
            """What the server calls this version; empty: it does not say."""
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self) -> bytes:
        """The next bytes; none at the end. Raises FileAwayError."""
        try:
            return self._answer.read(FILE_READ)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise FileAwayError(f"{without_query(self.url)} broke off: {_words(error)}") from None

    def stop(self) -> None:
        """Have a `read` of another thread end at once."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Read no more."""
        if self._connection is not None:
            self._connection.close()
        if self._given is not None:
            self._given.close()  # it has the socket to itself where the server ends the connection

    def _asked(self, here: PartHere) -> http.client.HTTPResponse:
        headers = {"Accept": here.accept, "Accept-Encoding": "identity", "User-Agent": "muster"}
        if here.offset and here.version:
            headers |= {"Range": f"bytes={here.offset}-", "If-Range": here.version}
        if here.end is not None:
            headers["Range"] = f"bytes={here.offset}-{here.end - 1}"
        if is_strong(here.whole):
            headers["If-None-Match"] = here.whole
        url, shown = self.url, self._access
        for _ in range(REDIRECTIONS + 1):
            shown = shown if shown.is_shown_to(url) else _OPEN  # for good: who leads elsewhere may lead back, too
            answer = self._answered(url, headers, shown)
            if answer.status in _REDIRECTED and (place := answer.headers.get("Location")):
                self.close()
                url = urljoin(url, place)
                continue
            if answer.status == _NOT_THERE and "Range" in headers:
                self.close()
                headers = {name: value for name, value in headers.items() if name not in {"Range", "If-Range"}}
                continue
            if answer.status != _UNCHANGED or "If-None-Match" not in headers:
                self._refuse(answer, url, shown)
            return answer
        raise FileRefusedError(f"{without_query(self.url)} leads on to other places more than {REDIRECTIONS} times")

    def _answered(self, url: str, headers: Mapping[str, str], access: WebAccess) -> http.client.HTTPResponse:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise FileRefusedError(
                f"{without_query(self.url)} leads on to {without_query(url)[:200]}, which is no web page"
            )
        shown = without_query(self.url)
        try:
            limit = min(CONNECT_LIMIT, self._patience)
            if parts.scheme == "http":
                connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=limit)
            else:
                connection = http.client.HTTPSConnection(
                    parts.hostname, parts.port, timeout=limit, context=access.trust()
                )
            self._connection = connection
            connection.connect()
            _refuse_link_local(connection.sock.getpeername()[0], shown)
            self._socket = connection.sock
            self._socket.settimeout(self._patience)
            told = {"Authorization": access.authorization} if access.authorization else {}
            path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
            connection.request("GET", path, headers={**headers, **told})
            answer = self._given = connection.getresponse()
        except ssl.SSLCertVerificationError as error:
            message = (
                f"{shown} shows a certificate that this node does not believe: {error.verify_message}; if its server "
                "has an authority of its own, name a secret of kind http with its certificate as `ca`"
            )
            raise FileRefusedError(message) from None
        except WebAccessError as error:
            raise FileRefusedError(str(error)) from None
        except (OSError, http.client.HTTPException) as error:
            raise FileAwayError(f"{shown} cannot be reached: {_words(error)}") from None
        except ValueError:
            raise FileRefusedError(f"{shown} leads on to what is no URL") from None
        return answer

    def _refuse(self, answer: http.client.HTTPResponse, url: str, access: WebAccess) -> None:
        shown, status = without_query(self.url), answer.status
        if status in {_WHOLE, _PART}:
            return
        if status in _DENIED:
            challenge = answer.headers.get("WWW-Authenticate", "")
            raise FileDeniedError(self._denial(status, url, access), challenge)
        if status in _GONE:
            raise FileRefusedError(f"there is nothing at {shown} (HTTP {status})")
        if status in _LATER or status >= 500:  # noqa: PLR2004 - the server's own faults
            raise FileAwayError(f"{shown} has no answer now (HTTP {status})")
        raise FileRefusedError(f"{shown} answers with HTTP {status}, which is no file")

    def _denial(self, status: int, url: str, access: WebAccess) -> str:
        """Why a server lets nobody in, by what it was shown."""
        shown, secret = without_query(self.url), self._access.secret
        if access.secret:
            return f"{shown} refuses the secret {secret!r} (HTTP {status})"
        if secret:
            other = f"{urlsplit(url).netloc}, which is not shown the secret {secret!r} and lets nobody in"
            return f"{shown} leads on to {other} (HTTP {status})"
        return f"{shown} lets nobody in without credentials (HTTP {status}); name the secret that opens it"

    def _place(self, offset: int) -> int:
        if self._answer.status != _PART:
            return 0
        unit, _, rest = self._answer.headers.get("Content-Range", "").partition(" ")
        if unit != "bytes" or not rest.startswith(f"{offset}-"):
            raise FileAwayError(f"{without_query(self.url)} sends another part than the one that was asked for")
        return offset

    def _size(self) -> int | None:
        headers = self._answer.headers
        if headers.get("Content-Encoding", "identity") != "identity":
            raise FileRefusedError(
                f"{without_query(self.url)} is only sent in another form ({headers['Content-Encoding']})"
            )
        if self._answer.status == _PART:
            total = headers.get("Content-Range", "").rpartition("/")[2]
            return int(total) if total.isdecimal() else None
        length = headers.get("Content-Length", "")
        return int(length) if length.isdecimal() and not self._answer.chunked else None

    def _version(self) -> str:
        headers = self._answer.headers
        said = headers.get("ETag") or headers.get("Last-Modified") or ""
        return said if len(said) <= LONGEST_VERSION and said.isprintable() else ""


def is_strong(version: str) -> bool:
    """Whether the same version surely means the same bytes, so that a part of them may be kept."""
    return version.startswith('"')


def _refuse_link_local(address: str, shown: str) -> None:
    if is_of_link(address):
        raise FileRefusedError(leads_to_link(shown, address))


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
