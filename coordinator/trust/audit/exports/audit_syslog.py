"""The audit log at a syslog: one message of RFC 5424 for each entry, over a local socket, UDP or TCP."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from muster.domain.fleet.access import AuditEntry
from muster.domain.fleet.audit_chain import line_of

SYSLOG_PATIENCE = 5.0
"""Seconds that a syslog has to take a connection or a message."""
_AUDIT = 13
"""The facility "log audit"."""
_INFO, _WARNING = 6, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SyslogTarget:
    """Where a syslog listens: `unix:/dev/log`, `udp://HOST:PORT` or `tcp://HOST:PORT`."""

    scheme: str
    path: str = ""
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        if self.scheme == "unix":
            return f"unix:{self.path}"
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class AuditSyslog:
    """A syslog that is handed entries; raises OSError where it does not take them in time."""

    def __init__(self, target: SyslogTarget) -> None:
        self._target = target
        self._socket: socket.socket | None = None

    @property
    def name(self) -> str:
        """What it is called in messages and in the note on how far it is."""
        return str(self._target)

    def written(self) -> int | None:
        """None: nobody can ask a syslog what it has."""
        return None

    def write(self, entries: Sequence[AuditEntry]) -> None:
        """Hand entries over, in order."""
        try:
            opened = self._opened()
            for entry in entries:
                message = message_of(entry, socket.gethostname(), os.getpid())
                # Over TCP each message is preceded by its length (RFC 6587).
                opened.sendall(b"%d %s" % (len(message), message) if self._target.scheme == "tcp" else message)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _opened(self) -> socket.socket:
        if self._socket is not None and self._target.scheme == "tcp" and _has_hung_up(self._socket):
            self.close()
        if self._socket is None:
            self._socket = _connected(self._target)
        return self._socket


def message_of(entry: AuditEntry, host: str, pid: int) -> bytes:
    """An entry as a message of RFC 5424, whose text is the line of JSON that a file would have."""
    severity = _INFO if entry.result.startswith("ok") else _WARNING
    at = entry.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    header = f"<{_AUDIT * 8 + severity}>1 {at} {host or '-'} muster-coordinator {pid} audit -"
    return f"{header} {line_of(entry)}".encode("ascii", errors="replace")


def _connected(target: SyslogTarget) -> socket.socket:
    if target.scheme == "tcp":
        return socket.create_connection((target.host, target.port), SYSLOG_PATIENCE)
    if target.scheme == "unix":
        opened, address = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), target.path
    else:
        family, kind, _, _, found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_DGRAM)[0]
        opened, address = socket.socket(family, kind), found  # type: ignore[assignment]  # an address of IPv6 has more parts
    try:
        opened.settimeout(SYSLOG_PATIENCE)
        opened.connect(address)
    except OSError:
        opened.close()
        raise
    return opened


def _has_hung_up(opened: socket.socket) -> bool:
    """Whether the other side has closed: what is sent then would be lost without a word."""
    try:
        return not opened.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
