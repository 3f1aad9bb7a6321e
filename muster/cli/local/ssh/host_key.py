"""The key of the SSH server on this machine, made once; and the file by which `ssh` knows it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh

from muster.cli.local.ssh.client_config import known_hosts_file
from muster.cli.local.ssh.host_names import HOST_PATTERN
from muster.domain.errors import MusterError
from muster.trust.files import write_private

_KEY = "host_key"


def host_key(directory: Path) -> bytes:
    """The private key, in the form of OpenSSH; made where there is none, together with the file of known hosts.

    Raises MusterError where it cannot be kept or read.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(directory):
            return _kept(directory)
    except OSError as error:
        raise MusterError(f"cannot keep the key of ssh in {directory}: {error.strerror}") from error


def _kept(directory: Path) -> bytes:
    file, known = directory / _KEY, known_hosts_file(directory)
    try:
        kept = file.read_bytes()
    except FileNotFoundError:
        kept = asyncssh.generate_private_key("ssh-ed25519").export_private_key()
        write_private(file, kept)
    try:
        public = asyncssh.import_private_key(kept).export_public_key().decode()
    except asyncssh.KeyImportError as error:
        raise MusterError(f"{file} is no private key; remove it, and the next ssh makes another one") from error
    line = f"{HOST_PATTERN} {' '.join(public.split()[:2])}\n"
    if not known.exists() or known.read_text() != line:
        write_private(known, line.encode())
    return kept


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Hold the directory, as several may come for the first time at once."""
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)
