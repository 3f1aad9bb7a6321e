"""The program `muster` as it is started, and somebody who answers it at a terminal."""

import asyncio
import os
import pty
import sys

from tests.integration.programs import ROOT
from tests.integration.secured import Secured

PROGRAM = (sys.executable, "-c", "from muster.cli.main import main; main()")


def environment(fleet: Secured) -> dict[str, str]:
    """Variables with which the program is the admin of a fleet."""
    authority = fleet.directory / "authority.pem"
    authority.write_bytes(fleet.authority.certificate)
    ours = {
        "MUSTER_COORDINATOR": fleet.doors.clients,
        "MUSTER_TOKEN": fleet.admin_token,
        "MUSTER_TLS_CA": str(authority),
    }
    return {**os.environ, **ours, "MUSTER_HOME": "/nowhere", "PYTHONPATH": str(ROOT), "COLUMNS": "200"}


async def typed(fleet: Secured, *arguments: str, answers: bytes, code: int = 0) -> bytes:
    """What somebody sees who answers the program at a terminal; it must end with this exit code."""
    mine, theirs = pty.openpty()
    program = await asyncio.create_subprocess_exec(
        *PROGRAM, *arguments, env=environment(fleet), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    for answer in answers.splitlines(keepends=True):
        while not seen.endswith(b": "):
            seen += await asyncio.to_thread(os.read, mine, 1000)
        os.write(mine, answer)
        seen += b"|"
    assert await asyncio.wait_for(program.wait(), 60) == code
    seen += os.read(mine, 10_000)
    os.close(mine)
    return seen
