"""Large files of repositories, fetched from their servers over https. Blocks; made for threads."""

import errno
import http.client
import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from muster.domain.data.code import GitUrl
from muster.domain.quantity import size_text
from muster.transfer.git import lfs
from muster.transfer.git.access import GitKeys
from muster.transfer.git.faults import GitAwayError, GitRefusedError
from muster.transfer.git.servers import address_of
from muster.transfer.new_file import NEW_FILE

LARGEST_LARGE_FILES = 256 * 1024 * 1024
"""Bytes of all large files of one commit, with those of its submodules."""
LONGEST_LFS_ANSWER = 4 * 1024 * 1024
"""Bytes of what a server answers about large files."""
LFS_CONNECT = 10.0
"""Seconds for a connection to a server of large files."""

_READ = 1024 * 1024
_PRIVATE = 0o600
_DISK_IS_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class LargeFiles:
    """What fetches large files; another thread may stop it."""

    def __init__(self, opens: Callable[[GitUrl], GitKeys], stall: float) -> None:
        """`opens` gives what a server is shown; `stall` is for how many seconds one may send nothing."""
        self._opens = opens
        self._stall = stall
        self._socket: socket.socket | None = None
        self._stopped = False
        self._size = 0

    def stop(self) -> None:
        """Have it end soon."""
        self._stopped = True
        self._shut()

    def fetch(self, repository: str, files: Sequence[lfs.LargeFile], into: Path) -> Mapping[str, Path]:
        """Have files below a directory: where each lies, by its SHA-256. Raises as a fetch of a commit does."""
        self._size += sum(each.size for each in files)
        if self._size > LARGEST_LARGE_FILES:
            raise GitRefusedError(
                f"its large files (Git LFS) have {size_text(self._size)}; {size_text(LARGEST_LARGE_FILES)} are the "
                "most that is fetched: name a directory of it with `path`, or have them as inputs"
            )
        if not repository.startswith("https://"):
            raise GitRefusedError(
                "its large files (Git LFS) are only fetched over https://, and it is at another address"
            )
        found = dict[str, Path]()
        for at in range(0, len(files), lfs.LARGE_FILES_ASKED):
            some = files[at : at + lfs.LARGE_FILES_ASKED]
            places = self._places(repository, some)
            for each in some:
                found[each.digest] = into / each.digest
                self._fetch(each, places[each.digest], found[each.digest])
        return found

    def _places(self, repository: str, files: Sequence[lfs.LargeFile]) -> Mapping[str, lfs.LargeFilePlace]:
        headers = {"Accept": lfs.LFS_FORM, "Content-Type": lfs.LFS_FORM}
        with self._asked("POST", lfs.batch_url(repository), headers, lfs.batch_question(files)) as answer:
            said = answer.read(LONGEST_LFS_ANSWER + 1)
        if len(said) > LONGEST_LFS_ANSWER:
            raise GitRefusedError("its server answers with too much about large files (Git LFS)")
        return lfs.batch_places(said, files)

    def _fetch(self, file: lfs.LargeFile, place: lfs.LargeFilePlace, to: Path) -> None:
        content, left = sha256(), file.size
        with (
            self._asked("GET", place.url, place.headers, None, shows=not place.brings_authorization) as answer,
            os.fdopen(os.open(to, NEW_FILE, _PRIVATE), "wb") as written,
        ):
            while data := answer.read(min(_READ, left + 1)):
                left -= len(data)
                if left < 0:
                    break
                content.update(data)
                written.write(data)
        if left > 0:
            raise GitAwayError(f"the large file {file.digest[:12]} broke off, {size_text(left)} before its end")
        if left < 0 or content.hexdigest() != file.digest:
            raise GitRefusedError(f"the large file {file.digest[:12]} does not hold what its SHA-256 says")

    @contextmanager
    def _asked(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, *, shows: bool = True
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer of a server to one question."""
        server = lfs.read_place(url)
        if server is None:
            raise GitRefusedError("its large files (Git LFS) are at no address with https://")
        keys = self._opens(server) if shows else GitKeys()
        shown = {"Authorization": _basic(keys)} if keys.token else {}
        asked = {"User-Agent": "muster", "Accept-Encoding": "identity", **headers, **shown}
        query = urlsplit(url).query
        named = f"large files (Git LFS) at {server.host}"
        connection = http.client.HTTPSConnection(server.host, server.port)
        try:
            connection.sock = self._connected(server)
            connection.request(method, f"{server.path}{f'?{query}' if query else ''}", body, asked)
            answer = connection.getresponse()
            fault = lfs.status_fault(answer.status, bool(shown))
            if fault is not None:
                raise type(fault)(f"{named}: {fault}")
            with answer:
                yield answer
        except ssl.SSLCertVerificationError as error:
            raise GitRefusedError(f"{named}: its certificate is not believed ({error.verify_message})") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, OSError) and error.errno in _DISK_IS_FULL:
                raise
            raise GitAwayError(f"{named}: {_words(error)}") from None
        finally:
            self._shut()
            connection.close()

    def _connected(self, server: GitUrl) -> socket.socket:
        """A connection to the address that was looked at."""
        plain = socket.create_connection((address_of(server), server.port), min(LFS_CONNECT, self._stall))
        try:
            found = ssl.create_default_context().wrap_socket(plain, server_hostname=server.host)
        except BaseException:
            plain.close()
            raise
        found.settimeout(self._stall)
        self._socket = found
        if self._stopped:
            raise GitAwayError("it was stopped")
        return found

    def _shut(self) -> None:
        """End the connection below its encryption, so that whoever reads from it wakes up."""
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def _basic(keys: GitKeys) -> str:
    return f"Basic {b64encode(f'{keys.username}:{keys.token}'.encode(errors='surrogateescape')).decode()}"


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
