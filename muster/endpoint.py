"""Where the coordinator is and how one is known there: the one place that knows how that is found and noted down.

In the directory of `home`: `endpoint` has the address of what `muster up` runs here, `current` that of the last login,
and `logins/HOST:PORT` what is needed there, readable by this user only.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from muster.domain.errors import MusterError
from muster.trust.files import write_private

DEFAULT_ADDRESS = "127.0.0.1:7460"

_UP = "endpoint"
_CURRENT = "current"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A coordinator and how one is known there."""

    address: str
    authority: str | None = None
    """Certificate (PEM) of the fleet's authority; None: plain text, which only `muster up` speaks."""
    token: str | None = field(default=None, repr=False)
    """None: one has none."""


def home(environ: Mapping[str, str]) -> Path:
    """The directory of what Muster keeps for this user: MUSTER_HOME, else `~/.muster`."""
    return Path(environ.get("MUSTER_HOME") or "~/.muster").expanduser()


def coordinator_address(environ: Mapping[str, str]) -> str:
    """`host:port` from MUSTER_COORDINATOR, else of what `muster up` runs here, of the last login, or 127.0.0.1:7460."""
    own = home(environ)
    return environ.get("MUSTER_COORDINATOR") or _noted(own / _UP) or _noted(own / _CURRENT) or DEFAULT_ADDRESS


def login_of(environ: Mapping[str, str], address: str | None = None) -> Login:
    """How one is known at an address, or at that of `coordinator_address`; MUSTER_TOKEN and MUSTER_TLS_CA go first."""
    found = address or coordinator_address(environ)
    kept = _kept(home(environ), found)
    file = environ.get("MUSTER_TLS_CA")
    authority = kept.authority if not file else _read(Path(file))
    return Login(address=found, authority=authority, token=environ.get("MUSTER_TOKEN") or kept.token)


def note_up(home: Path, login: Login) -> None:
    """From now on clients of this user find what `muster up` runs."""
    keep_login(home, login, current=False)
    write_private(home / _UP, f"{login.address}\n".encode())


def forget_up(home: Path, address: str) -> None:
    """Undo `note_up`, unless another address was noted since."""
    if _noted(home / _UP) == address:
        (home / _UP).unlink(missing_ok=True)
        _file(home, address).unlink(missing_ok=True)


def keep_login(home: Path, login: Login, *, current: bool = True) -> None:
    """Keep how one is known at an address; with `current` it is the one that is asked from now on."""
    (home / "logins").mkdir(mode=0o700, parents=True, exist_ok=True)
    import json  # noqa: PLC0415

    write_private(_file(home, login.address), json.dumps(asdict(login)).encode())
    if current:
        write_private(home / _CURRENT, f"{login.address}\n".encode())


def keep_authorities(environ: Mapping[str, str], address: str, known: str, authorities: str) -> None:
    """Trust these authorities at an address, where a login is kept that trusts the known ones."""
    kept = _kept(home(environ), address)
    if kept.authority == known:
        keep_login(home(environ), replace(kept, authority=authorities), current=False)


def forget_login(home: Path, address: str) -> None:
    """Keep nothing of an address."""
    _file(home, address).unlink(missing_ok=True)
    if _noted(home / _CURRENT) == address:
        (home / _CURRENT).unlink(missing_ok=True)


def _kept(home: Path, address: str) -> Login:
    try:
        kept = _file(home, address).read_text()
        import json  # noqa: PLC0415 - only where something is kept

        return Login(**json.loads(kept))
    except OSError:
        return Login(address=address)
    except (ValueError, TypeError) as error:
        raise MusterError(f"{_file(home, address)} cannot be read; `muster login {address}` makes it anew") from error


def _file(home: Path, address: str) -> Path:
    return home / "logins" / address.replace("/", "_")


def _noted(file: Path) -> str | None:
    try:
        return file.read_text().strip() or None
    except OSError:
        return None


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as error:
        raise MusterError(f"cannot read the certificate of the authority {file}: {error.strerror}") from error
