"""The directory for what a start does not know and does not delete."""

import logging
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

log = logging.getLogger(__name__)

PUT_ASIDE = "put-aside"


def put_aside(state: Path, paths: Iterable[Path], now: datetime) -> Path | None:
    """Move files and directories of the state directory into one of their own; None if none of them is there.

    They keep their paths below it. Raises OSError; what has been moved by then stays moved.
    """
    place = None
    for path in paths:
        if path.exists():
            place = place or _made(state, now)
            target = place / path.relative_to(state)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.rename(target)
            log.warning("put aside, not deleted", extra={"what": str(path.relative_to(state)), "now": str(target)})
    return place


def _made(state: Path, now: datetime) -> Path:
    stem = f"{now:%Y%m%dT%H%M%SZ}"
    number = 1
    while True:
        place = state / PUT_ASIDE / (stem if number == 1 else f"{stem}-{number}")
        try:
            place.mkdir(mode=0o700, parents=True)
        except FileExistsError:
            number += 1
        else:
            return place
