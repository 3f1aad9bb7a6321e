"""The real program `muster` against a coordinator that asks who is there."""

import asyncio

from tests.integration.secured import Secured
from tests.integration.terminal import PROGRAM, environment


async def muster(fleet: Secured, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
    """The exit code of the program, and what it prints."""
    pipe = asyncio.subprocess.PIPE
    program = await asyncio.create_subprocess_exec(
        *PROGRAM, *arguments, env=environment(fleet), cwd=fleet.directory, stdin=pipe, stdout=pipe, stderr=pipe
    )
    out, err = await asyncio.wait_for(program.communicate(stdin.encode()), 60)
    return await program.wait(), out.decode(), err.decode()
