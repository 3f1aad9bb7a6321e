"""How an agent has the supervisor of a program start a companion, whichever agent started the program."""

import asyncio
import json
import os
from contextlib import suppress

from agent.core.door.names import INSIDE
from agent.executions.layout import COMPANION_ANSWER, COMPANION_CALL, ExecutionDirectory
from agent.executions.whole_file import write_whole
from agent.runtimes.kernel.descendants import CALL_SIGNAL
from agent.runtimes.process.attaching.answering import LONGEST_ANSWER, CompanionCall, CompanionStart
from agent.runtimes.process.program import FollowedProgram
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.interactive import MainProgramStreams

SUPERVISOR_CALL_LIMIT = 10.0
"""Seconds in which a supervisor answers; it needs a thousandth, but the node may be busy."""

_PRIVATE_CALL = 0o600


def companion_start(directory: ExecutionDirectory, ticket: str) -> CompanionStart:
    """The companion of an execution, whose program and whose door lie in its directory."""
    program, door = directory.programs.absolute() / INSIDE, directory.door.absolute()
    return CompanionStart(command=(str(program), "stay", str(door)), ticket=ticket)


def parent_of_main_program(directory: ExecutionDirectory, streams: MainProgramStreams) -> tuple[str, ...]:
    """The words before the path of a main program, its name and its arguments, where people talk to it."""
    program, door = directory.programs.absolute() / INSIDE, directory.door.absolute()
    return (str(program), "main", str(door), streams)


async def call_for_companion(directory: ExecutionDirectory, program: FollowedProgram, ticket: str) -> None:
    """Have a companion started beside a program; raises ExecutionError where that cannot be."""
    if program.ended.done() or program.gone.is_set():
        raise _not_started("user code does not run any more")
    call = CompanionCall(number=os.urandom(8).hex(), start=companion_start(directory, ticket))
    try:
        pipe = await asyncio.to_thread(_ready, directory, call)
    except OSError as problem:
        raise _not_started(f"cannot write {problem.filename}: {problem.strerror}") from problem
    try:
        program.supervisor.signal(CALL_SIGNAL)
        reason = await _first(program, pipe, call.number)
    finally:
        os.close(pipe)
        await asyncio.shield(asyncio.to_thread(_clear, directory))
    if reason:
        raise _not_started(reason)


async def _first(program: FollowedProgram, pipe: int, number: str) -> str:
    """What the supervisor says against it, or why it says nothing; empty: the companion was started."""
    loop = asyncio.get_running_loop()
    answering = loop.create_task(_answer(pipe, number), name="answer of a supervisor")
    ending = loop.create_task(program.gone.wait(), name="end of a supervisor")
    try:
        await asyncio.wait((answering, ending), timeout=SUPERVISOR_CALL_LIMIT, return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            return answering.result()
        if ending.done():
            return "user code has ended"
        pid = program.supervisor.pid
        silence = f"its supervisor (process {pid}) did not answer within {SUPERVISOR_CALL_LIMIT:g} s"
        return f"{silence}; an older agent may have made it"
    finally:
        for each in (answering, ending):
            each.cancel()
        await asyncio.gather(answering, ending, return_exceptions=True)


async def _answer(pipe: int, number: str) -> str:
    """The answer to a call; those to earlier ones are passed over."""
    loop = asyncio.get_running_loop()
    heard = asyncio.Event()
    loop.add_reader(pipe, heard.set)
    text = b""
    try:
        while True:
            await heard.wait()
            heard.clear()
            with suppress(BlockingIOError):
                text += os.read(pipe, LONGEST_ANSWER)
            *lines, text = text.split(b"\n")
            for said in map(json.loads, lines):
                if said["number"] == number:
                    return str(said["reason"])
    finally:
        loop.remove_reader(pipe)


def _ready(directory: ExecutionDirectory, call: CompanionCall) -> int:
    """Write the call down, and have a pipe for its answer: opened for both, so that it has no end. Raises OSError."""
    answer = directory.path / COMPANION_ANSWER
    answer.unlink(missing_ok=True)
    os.mkfifo(answer, _PRIVATE_CALL)
    pipe = os.open(answer, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        write_whole(directory.path / COMPANION_CALL, call.text(), _PRIVATE_CALL)
    except BaseException:
        os.close(pipe)
        raise
    return pipe


def _clear(directory: ExecutionDirectory) -> None:
    for name in (COMPANION_CALL, COMPANION_ANSWER):
        with suppress(OSError):
            (directory.path / name).unlink(missing_ok=True)


def _not_started(reason: str) -> ExecutionError:
    return ExecutionError(FailureKind.RUNTIME, f"the companion cannot be started: {reason}")
