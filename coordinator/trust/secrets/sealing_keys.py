"""The keys with which secrets are kept, in a file outside the database: the first one seals, all of them open.

There is more than one only while a rotation is under way; the next start finishes one that was interrupted.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from muster.domain.errors import MusterError
from muster.trust.files import read_secret, write_private
from muster.trust.sealing import KEY_BYTES, SealingKey, new_sealing_key

_OTHERS = 0o077
"""What the mode of the file must not have."""


def load_or_make(file: Path, used: Collection[str]) -> tuple[SealingKey, ...]:
    """The keys, made at the first start; MusterError where one is gone with whose name something is sealed."""
    if not file.exists():
        if used:
            raise MusterError(f"{file} is gone, and with it the key of the secrets in the database. {_remedy(file)}")
        return add_key(file, ())
    if file.stat().st_mode & _OTHERS:
        raise MusterError(f"{file} can be read by others than its owner: `chmod 600 {file}`, and rotate the key")
    keys = _read(file)
    if missing := sorted(set(used) - {key.name for key in keys}):
        raise MusterError(
            f"{file} is another key than that of the secrets in the database, which is called {missing[0]}. "
            f"{_remedy(file)}"
        )
    return keys


def load_or_make_any(file: Path) -> tuple[SealingKey, ...]:
    """The keys that are there, whatever is sealed with others; made if there are none, or what is there is no key."""
    try:
        return _read(file)
    except MusterError:
        if file.exists():  # somebody may still read it: the start writes a new one, and overwrites nothing
            file.replace(_free_name(file))
        return add_key(file, ())


def _free_name(file: Path) -> Path:
    """A name beside a file that cannot be read, which no other such file has."""
    number = 1
    while (name := file.with_name(f"{file.name}.unreadable-{number}")).exists():
        number += 1
    return name


def add_key(file: Path, keys: Sequence[SealingKey]) -> tuple[SealingKey, ...]:
    """The keys with a new one before them, which is kept from now on."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return keep_keys(file, (new_sealing_key(), *keys))


def keep_keys(file: Path, keys: Sequence[SealingKey]) -> tuple[SealingKey, ...]:
    """The keys, now those in the file."""
    write_private(file, "".join(f"{key.secret.hex()}\n" for key in keys).encode())
    return tuple(keys)


def _read(file: Path) -> tuple[SealingKey, ...]:
    try:
        keys = tuple(SealingKey(bytes.fromhex(line)) for line in read_secret(file).splitlines())
    except ValueError:
        keys = ()
    if not keys or any(len(key.secret) != KEY_BYTES for key in keys):
        raise MusterError(f"{file} does not hold a key of {KEY_BYTES} bytes in hexadecimal. {_remedy(file)}")
    return keys


def _remedy(file: Path) -> str:
    return (
        f"Put a backup of {file.name} in its place; if there is none, start once with `--secrets-key replace`, which "
        "forgets the secrets that nobody can open any more"
    )
