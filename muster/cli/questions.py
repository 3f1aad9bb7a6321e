"""What is asked on the terminal while computers are reached by SSH, and what is answered where there is none."""

import getpass
import signal
import sys
from collections.abc import Callable, Collection
from pathlib import Path

from muster.bootstrap.ssh.known_hosts import HostKey
from muster.cli.output.screen import say
from muster.domain.errors import InvalidJobError, PermissionDeniedError


class Questions:
    """Asks one thing at a time; the event loop stands still meanwhile, so that nothing writes in between."""

    def __init__(self, accepted: Collection[str]) -> None:
        self._accepted = frozenset(map(_fingerprint, accepted))
        self._password: str | None = None

    async def confirm(self, key: HostKey) -> bool:
        """Whether the key of a server is believed of which nothing is known."""
        if key.fingerprint in self._accepted:
            return True
        if not sys.stdin.isatty():
            return False
        say(f"nothing is known of {key.name}; it shows the key", err=True)
        say(f"  {key.kind} {key.fingerprint}", err=True)
        said = _asked(lambda: input("is that the one of `ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub` there? [y/N] "))
        return said.strip().lower() in {"y", "yes"}

    async def passphrase(self, file: Path) -> str:
        """The passphrase of a key file."""
        self._need_terminal(f"{file} needs a passphrase; put the key into the SSH agent (ssh-add {file})")
        return _asked(lambda: getpass.getpass(f"passphrase of {file}: "))

    async def password(self) -> str:
        """The password for sudo, asked once; used wherever sudo wants one."""
        if self._password is None:
            self._need_terminal("sudo there asks for a password; allow it without (NOPASSWD), or log in as root")
            self._password = _asked(lambda: getpass.getpass("password for sudo: "))
        return self._password

    @staticmethod
    def _need_terminal(instead: str) -> None:
        if not sys.stdin.isatty():
            raise PermissionDeniedError(instead)


def _asked(question: Callable[[], str]) -> str:
    """The answer; Ctrl-C counts at once, not when the line is complete."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return question()
    except EOFError:
        return ""
    finally:
        signal.signal(signal.SIGINT, before)


def _fingerprint(text: str) -> str:
    if not text.startswith("SHA256:"):
        raise InvalidJobError(f"{text!r} is no fingerprint like SHA256:…, as `ssh-keygen -lf` shows it")
    return text.rstrip("=")
