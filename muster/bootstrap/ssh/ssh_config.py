"""What the configuration of SSH says of a host; `ssh -G` is asked where there is an ssh, as it knows all its words."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import paramiko

from muster.bootstrap.ssh.target import Target
from muster.domain.errors import MusterError

_ASKING = 10.0
"""Seconds that `ssh -G` may take; a `Match exec` runs programs."""
_USUAL = "~/.ssh/"
_NONE = "none"


@dataclass(slots=True)
class SshConfig:
    """The files `config` of a user and of the machine."""

    directory: Path
    """The user's directory for SSH."""
    _asked: dict[Target, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    def of(self, target: Target) -> "HostWords":
        """What is said of a host. Blocks; raises MusterError where the files cannot be read."""
        if target not in self._asked:
            program = shutil.which("ssh")
            self._asked[target] = self._read(target.host) if program is None else self._ask(program, target)
        return HostWords(self._asked[target], self.directory)

    def _ask(self, program: str, target: Target) -> Mapping[str, Sequence[str]]:
        config = self.directory / "config"
        own = self.directory == _home_of_ssh() / ".ssh"
        command = [program, "-T", "-G"]
        if not own:
            command += ["-F", str(config) if config.is_file() else "/dev/null"]
        if target.user is not None:
            command += ["-l", target.user]
        if target.port is not None:
            command += ["-p", str(target.port)]
        try:
            answer = subprocess.run(  # noqa: S603 - the user's own ssh; a host never begins with a hyphen
                [*command, "--", target.host], capture_output=True, text=True, check=False, timeout=_ASKING
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MusterError(f"`ssh -G {target.host}` does not answer: {error}") from error
        if answer.returncode != 0:
            reason = answer.stderr.strip() or f"it ended with {answer.returncode}"
            raise MusterError(f"the configuration of SSH cannot be read: {reason}")
        said: dict[str, list[str]] = {}
        for line in answer.stdout.splitlines():
            word, _, value = line.partition(" ")
            said.setdefault(word, []).append(value)
        return said

    def _read(self, host: str) -> Mapping[str, Sequence[str]]:
        """Without an ssh: what paramiko understands of the user's file."""
        file = self.directory / "config"
        if not file.is_file():
            return {}
        try:
            found = paramiko.SSHConfig.from_path(str(file)).lookup(host)
        except (paramiko.ConfigParseError, OSError, ImportError) as error:
            raise MusterError(f"{file} cannot be read: {error}") from error
        return {word: value if isinstance(value, list) else [value] for word, value in found.items()}


@dataclass(frozen=True, slots=True)
class HostWords:
    """The words of the configuration for one host."""

    said: Mapping[str, Sequence[str]]
    directory: Path

    def one(self, word: str) -> str | None:
        """The value of a word; None where nothing, or `none`, is said."""
        values = self.said.get(word, ())
        return values[0] if values and values[0].lower() != _NONE else None

    def files(self, word: str) -> tuple[Path, ...]:
        """The files that a word names; what lies in the usual directory lies in the user's."""
        texts = [text for value in self.said.get(word, ()) for text in value.split()]
        return tuple(self._path(text) for text in texts if text.lower() != _NONE)

    def _path(self, text: str) -> Path:
        for usual in (_USUAL, f"{Path(_USUAL).expanduser()}/", f"{_home_of_ssh()}/.ssh/"):
            if text.startswith(usual):
                return self.directory / text.removeprefix(usual)
        return Path(text).expanduser()


def _home_of_ssh() -> Path:
    """The home directory of this user as ssh knows it, which does not look at HOME."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return Path.home()
