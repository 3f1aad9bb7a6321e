"""A PostgreSQL server of its own, reached over a socket in its directory, and gone at the end."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine

PLACES = (os.environ.get("PATH", ""), *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True))
"""Debian has the programs of the server outside PATH."""
NOBODY = 65_534
"""PostgreSQL refuses to run as root."""


class MissingServerError(Exception):
    """There is no PostgreSQL here; says what to install."""


class PostgreSQL:
    """A running server."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._made = 0

    def new_database(self) -> str:
        """The URL of a database that is empty."""
        self._made += 1
        name = f"muster_{self._made}"
        engine = create_engine(self._url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        engine.dispose()
        return self._url(name)

    def _url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@/{database}?host={self._directory}"


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """A server that keeps nothing; MissingServerError where it, or the driver, is not installed."""
    initdb, server = (shutil.which(name, path=os.pathsep.join(PLACES)) for name in ("initdb", "postgres"))
    if initdb is None or server is None or find_spec("psycopg") is None:
        raise MissingServerError("needs PostgreSQL (Debian: postgresql) and psycopg")
    # Not below pytest's own directory, into which only its user may look.
    with tempfile.TemporaryDirectory(prefix="muster-pg-") as place:
        directory = Path(place)
        directory.chmod(0o755)
        user: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        if user:
            os.chown(directory, NOBODY, NOBODY)
        data = directory / "data"
        make = [initdb, "-D", str(data), "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        subprocess.run(make, check=True, capture_output=True, cwd="/", timeout=120, **user)
        serve = [
            server,
            "-D",
            str(data),
            "-k",
            str(directory),
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
            "-c",
            "shared_buffers=8MB",
        ]
        running = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True, cwd="/", **user)
        try:
            assert running.stderr is not None
            said = ""
            while "ready to accept connections" not in said:
                line = running.stderr.readline()
                assert line, f"PostgreSQL ended: {said}"
                said += line
            yield PostgreSQL(directory)
        finally:
            running.terminate()
            running.communicate(timeout=60)
