"""The program `muster` beside a fleet whose executions somebody attaches to."""

import asyncio
import os

from tests.integration.attaching import WITHIN, AttachingFleet
from tests.integration.programs import ROOT
from tests.integration.terminal import PROGRAM


def variables(fleet: AttachingFleet) -> dict[str, str]:
    """The environment of the program: it talks to the coordinator of the fleet, as its local account."""
    token = (fleet.state / "local-token").read_text().strip()
    ours = {"MUSTER_COORDINATOR": fleet.address, "MUSTER_TOKEN": token, "MUSTER_HOME": "/nowhere"}
    return {**os.environ, **ours, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}


async def muster(fleet: AttachingFleet, *arguments: str, given: bytes = b"") -> tuple[int, str, str]:
    """Exit code, output and errors of the program."""
    pipe = asyncio.subprocess.PIPE
    program = await asyncio.create_subprocess_exec(
        *PROGRAM, *arguments, env=variables(fleet), stdin=pipe, stdout=pipe, stderr=pipe
    )
    out, err = await asyncio.wait_for(program.communicate(given), WITHIN)
    return await program.wait(), out.decode(), err.decode()
