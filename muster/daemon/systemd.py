"""What a service tells systemd: that it serves, what it does, that it is alive; nothing where systemd does not ask."""

import asyncio
import os
import socket
from collections.abc import MutableMapping

PART_OF_LIMIT = 3
"""So often within the limit a program says that it is alive: one word that comes late does no harm."""


class Systemd:
    """The line to the service manager, if this program was started by one that listens.

    Takes its variables out of `environ`: what this program starts shall not speak in its name.
    """

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        self._address = environ.pop("NOTIFY_SOCKET", "")
        limit, watched = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
        meant = limit.isdecimal() and watched in {"", str(os.getpid())}
        self._limit = int(limit) / 1e6 if meant else 0.0

    def ready(self, status: str) -> None:
        """Tell systemd that the program serves, whatever its peers do."""
        self._say(f"READY=1\nSTATUS={status}")

    def status(self, text: str) -> None:
        """One line for `systemctl status`."""
        self._say(f"STATUS={text}")

    def stopping(self) -> None:
        """Tell systemd that the program ends in an orderly way."""
        self._say("STOPPING=1")

    async def keep_alive(self) -> None:
        """Say again and again that the event loop turns, until cancelled; when it hangs, systemd starts another one."""
        while self._limit:
            self._say("WATCHDOG=1")
            await asyncio.sleep(self._limit / PART_OF_LIMIT)

    def _say(self, text: str) -> None:
        """One datagram; a manager that is gone or busy is no reason to fail."""
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
            line.setblocking(False)
            try:
                line.sendto(text.encode(), address)
            except OSError:
                return
