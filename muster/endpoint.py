"""Where the coordinator is: the one place that knows how an address is found and noted down."""

from collections.abc import Mapping
from pathlib import Path

DEFAULT_ADDRESS = "127.0.0.1:7460"


def home(environ: Mapping[str, str]) -> Path:
    """The directory of what Muster keeps for this user: MUSTER_HOME, else `~/.muster`."""
    return Path(environ.get("MUSTER_HOME") or "~/.muster").expanduser()


def coordinator_address(environ: Mapping[str, str]) -> str:
    """`host:port` from MUSTER_COORDINATOR, else from the last `muster up` here, else 127.0.0.1:7460."""
    return environ.get("MUSTER_COORDINATOR") or _noted(home(environ)) or DEFAULT_ADDRESS


def note_address(home: Path, address: str) -> None:
    """From now on clients of this user find the coordinator at `address`."""
    home.mkdir(parents=True, exist_ok=True)
    fresh = home / "endpoint.new"
    fresh.write_text(f"{address}\n")
    fresh.replace(home / "endpoint")


def forget_address(home: Path, address: str) -> None:
    """Undo `note_address`, unless another address was noted since."""
    if _noted(home) == address:
        (home / "endpoint").unlink(missing_ok=True)


def _noted(home: Path) -> str | None:
    try:
        return (home / "endpoint").read_text().strip() or None
    except OSError:
        return None
