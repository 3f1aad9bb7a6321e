"""Where the coordinator is and how one is known there: the one place that knows how that is found and noted down.

In the directory of `home`: `chosen` has the address that `muster logins use` named, `endpoint` that of what `muster up`
runs here, `current` that of the last login, and `logins/HOST:PORT` what is needed there, readable by this user only.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from muster.domain.errors import InvalidJobError, MusterError
from muster.trust.files import write_private

DEFAULT_PORT = 7460
DEFAULT_ADDRESS = f"127.0.0.1:{DEFAULT_PORT}"
_LAST_PORT = 65535
_ADDRESS = re.compile(r"(?P<host>\[[^\s\[\]]+\]|[^\s:\[\]-][^\s:\[\]]*)(?::(?P<port>[^:]*))?")

_UP = "endpoint"
_CURRENT = "current"
_CHOSEN = "chosen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A coordinator and how one is known there."""

    address: str
    authority: str | None = None
    """Certificate (PEM) of the fleet's authority; None: plain text, which only `muster up` speaks."""
    token: str | None = field(default=None, repr=False)
    """None: one has none."""
    account: str = ""
    """The name of the account there; empty: it was never told."""
    console: str = ""
    """The address of the console that `muster up` runs beside it; empty: the coordinator says where one is."""


def home(environ: Mapping[str, str]) -> Path:
    """The directory of what Muster keeps for this user: MUSTER_HOME, else `~/.muster`."""
    named = environ.get("MUSTER_HOME") or "~/.muster"
    try:
        return Path(named).expanduser()
    except RuntimeError:
        raise MusterError(f"this user has no home directory for {named}; set MUSTER_HOME to a directory") from None


def parse_address(text: str) -> str:
    """`host:port` from an address as people write it: the port may be left out (7460); raises InvalidJobError."""
    text = text.strip()
    if text.startswith(("unix:", "dns:")):
        return text
    if "/" in text:
        raise InvalidJobError(
            f"{text!r} is not the address of a coordinator; write HOST:PORT, without http:// or a path"
        )
    if text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"  # an IPv6 address alone
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise InvalidJobError(f"{text!r} names no host; write HOST:PORT, like localhost:{DEFAULT_PORT}")
    port = found["port"] or str(DEFAULT_PORT)
    if not (port.isascii() and port.isdecimal() and 1 <= int(port) <= _LAST_PORT):
        raise InvalidJobError(f"the port in {text!r} must be a number from 1 to {_LAST_PORT}")
    return f"{found['host']}:{int(port)}"


def coordinator_address(environ: Mapping[str, str]) -> str:
    """`host:port` from MUSTER_COORDINATOR, else the first that is there of: chosen by `muster logins use`, of what
    `muster up` runs here, of the last login, 127.0.0.1:7460.
    """
    named = environ.get("MUSTER_COORDINATOR")
    if named:
        return parse_address(named)
    own = home(environ)
    return _noted(own / _CHOSEN) or _noted(own / _UP) or _noted(own / _CURRENT) or DEFAULT_ADDRESS


def local_address(environ: Mapping[str, str]) -> str | None:
    """The address of what `muster up` runs here for this user; None where it runs nothing."""
    return _noted(home(environ) / _UP)


def project_of(environ: Mapping[str, str]) -> str:
    """The project from MUSTER_PROJECT; empty where it says none, and the coordinator settles it."""
    return environ.get("MUSTER_PROJECT", "")


def logins_in(home: Path) -> tuple[Login, ...]:
    """How one is known at each coordinator, by address."""
    folder = home / "logins"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    found = (_kept(home, name) for name in names)
    return tuple(login for login in found if login.token is not None or login.authority is None)  # the others ended


def choose_login(home: Path, address: str) -> None:
    """Have commands ask at this address until something else is chosen or begins."""
    with _writing(home):
        write_private(home / _CHOSEN, f"{address}\n".encode())


def login_of(environ: Mapping[str, str], address: str | None = None) -> Login:
    """How one is known at an address, or at that of `coordinator_address`; MUSTER_TOKEN and MUSTER_TLS_CA go first."""
    found = parse_address(address) if address else coordinator_address(environ)
    kept = _kept(home(environ), found)
    file = environ.get("MUSTER_TLS_CA")
    authority = kept.authority if not file else _read(Path(file))
    token = environ.get("MUSTER_TOKEN") or kept.token
    return Login(address=found, authority=authority, token=token, console=kept.console)


def note_up(home: Path, login: Login) -> None:
    """From now on clients of this user find what `muster up` runs."""
    keep_login(home, login, current=False)
    with _writing(home):
        write_private(home / _UP, f"{login.address}\n".encode())
        (home / _CHOSEN).unlink(missing_ok=True)


def forget_up(home: Path, address: str) -> None:
    """Undo `note_up`, unless another address was noted since."""
    if _noted(home / _UP) == address:
        (home / _UP).unlink(missing_ok=True)
        _file(home, address).unlink(missing_ok=True)


def keep_login(home: Path, login: Login, *, current: bool = True) -> None:
    """Keep how one is known at an address; with `current` it is the one that is asked from now on."""
    import json  # noqa: PLC0415 - only where something is kept

    with _writing(home):
        (home / "logins").mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(_file(home, login.address), json.dumps(asdict(login)).encode())
        if current:
            write_private(home / _CURRENT, f"{login.address}\n".encode())
            (home / _CHOSEN).unlink(missing_ok=True)


def keep_authorities(environ: Mapping[str, str], address: str, known: str, authorities: str) -> None:
    """Trust these authorities at an address, where a login is kept that trusts the known ones."""
    kept = _kept(home(environ), address)
    if kept.authority == known:
        keep_login(home(environ), replace(kept, authority=authorities), current=False)


def forget_login(home: Path, address: str) -> None:
    """Forget the token for an address; the authority stays known, so that the next login need not be told it."""
    with _writing(home):
        kept = _kept(home, address)
        if kept.authority is not None:
            keep_login(home, replace(kept, token=None), current=False)
        else:
            _file(home, address).unlink(missing_ok=True)
        for noted in (_CURRENT, _CHOSEN):
            if _noted(home / noted) == address:
                (home / noted).unlink(missing_ok=True)


@contextmanager
def _writing(home: Path) -> Iterator[None]:
    """Say in one sentence where a file of this directory cannot be written."""
    try:
        yield
    except OSError as error:
        raise MusterError(
            f"cannot write to {home}: {error.strerror}; set MUSTER_HOME to a directory that you may write to"
        ) from error


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
