"""Main programs with an input or a terminal, over real coordinator, relay and agent, and `muster attach` to them."""

import asyncio
import os
import pty
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from muster.client.attachments.attachment import Attachment
from muster.domain.attachments.frame import AttachmentEnded, AttachmentInput, AttachmentInputEnd, AttachmentOutput
from muster.domain.attachments.request import CommandRequest, MainProgramRequest, TerminalSize
from muster.domain.errors import ConflictError
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.attaching import WITHIN, AttachingFleet, attaching_fleet, ended, told
from tests.integration.attaching_program import muster, variables
from tests.integration.terminal import PROGRAM

KEPT = CommandRequest(env=("PS1=$ ",), terminal=TerminalSize(rows=24, columns=80), has_input=True, kept="work")


def reads(script: str, workers: int = 1) -> JobSpec:
    return JobSpec(name="reads", roles=(Role(count=workers, command=("sh", "-c", script)),), stdin=True)


def talks(script: str) -> JobSpec:
    return JobSpec(name="talks", roles=(Role(command=("sh", "-c", script)),), stdin=True, tty=True)


async def shown(attachment: Attachment, text: bytes) -> bytes:
    """What is shown up to a text."""
    seen = b""
    async with asyncio.timeout(WITHIN):
        while text not in seen:
            frame = await attachment.receive()
            assert not isinstance(frame, AttachmentEnded), (seen, frame)
            seen += frame.data if isinstance(frame, AttachmentOutput) else b""
    return seen


async def logged(fleet: AttachingFleet, job: str) -> list[str]:
    """The whole log of a job that has ended, rank by rank."""
    return sorted([f"{line.rank} {line.text.decode()}" async for line in fleet.client.jobs.logs(job, follow=True)])


class Cli:
    """The program `muster`, with pipes or at a terminal."""

    def __init__(self, program: asyncio.subprocess.Process, terminal: int | None) -> None:
        self.program = program
        self._terminal = terminal
        self.seen = b""

    async def until(self, text: bytes) -> None:
        """Read what it shows at its terminal up to a text."""
        assert self._terminal is not None
        async with asyncio.timeout(WITHIN):
            while text not in self.seen:
                self.seen += await asyncio.to_thread(os.read, self._terminal, 4096)

    def type(self, keys: bytes) -> None:
        assert self._terminal is not None
        os.write(self._terminal, keys)

    async def code(self) -> int:
        return await asyncio.wait_for(self.program.wait(), WITHIN)


@asynccontextmanager
async def at_terminal(fleet: AttachingFleet, *arguments: str) -> AsyncIterator[Cli]:
    mine, theirs = pty.openpty()
    program = await asyncio.create_subprocess_exec(
        *PROGRAM, *arguments, env=variables(fleet), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    try:
        yield Cli(program, mine)
    finally:
        with suppress(ProcessLookupError):
            program.kill()
        await program.wait()
        os.close(mine)


async def test_a_job_reads_what_is_sent_and_its_log_and_exit_code_are_its_own(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running(reads("while read line; do echo got $line; done; exit 3"))
        async with await fleet.client.attachments.open(job.id, MainProgramRequest()) as hand:
            await hand.send(AttachmentInput(data=b"one\ntwo\n"))
            await hand.send(AttachmentInputEnd())
            output, end = await asyncio.wait_for(ended(hand), WITHIN)
        ended_job = await fleet.client.jobs.wait(job.id, timeout=WITHIN)

        assert (output, end) == (b"", AttachmentEnded(code=3))
        assert ended_job.failure is not None
        assert ended_job.failure.exit is not None
        assert ended_job.failure.exit.code == 3
        assert await logged(fleet, job.id) == ["0 got one", "0 got two"]


async def test_a_terminal_outlives_its_agent_and_is_taken_up_again(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running(talks("stty -echo; while read line; do echo got $line; stty size; done"))
        size = TerminalSize(rows=30, columns=90)
        async with await fleet.client.attachments.open(job.id, MainProgramRequest(terminal=size)) as hand:
            await hand.send(AttachmentInput(data=b"one\n"))
            await shown(hand, b"got one\r\n30 90\r\n")
            await fleet.kill("agent")
        await fleet.start_agent()
        async with await fleet.client.attachments.open(job.id, MainProgramRequest(terminal=size)) as again:
            await again.send(AttachmentInput(data=b"two\n"))
            await shown(again, b"got two\r\n30 90\r\n")
            await again.send(AttachmentInput(data=b"\x04"))
            _, end = await asyncio.wait_for(ended(again), WITHIN)
        ended_job = await fleet.client.jobs.wait(job.id, timeout=WITHIN)

        assert (end, ended_job.phase) == (AttachmentEnded(code=0), JobPhase.SUCCEEDED)
        assert await logged(fleet, job.id) == ["0 30 90", "0 30 90", "0 got one", "0 got two"]


async def test_a_job_without_the_keys_says_so(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        _, end = await told(fleet.client.attachments.open(job.id, MainProgramRequest()))

        assert "its job has neither `tty` nor `stdin`" in end.text


async def test_kept_shells_are_listed_and_one_is_ended(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        attachments = fleet.client.attachments
        assert await attachments.kept(job.id) == ()
        async with await attachments.open(job.id, KEPT) as shell:
            await shell.send(AttachmentInput(data=b"echo $((6 * 7)) of them\n"))
            await shown(shell, b"42 of them\r\n")
            [listed] = await attachments.kept(job.id, rank=0)
            with pytest.raises(ConflictError, match="there is no kept shell other in the execution; there are: work"):
                await attachments.end_kept(job.id, "other")
            code, out, _ = await muster(fleet, "shell", job.id, "--list", "-o", "json")
            await attachments.end_kept(job.id, "work")
            await asyncio.wait_for(ended(shell), WITHIN)

        assert (listed.name, listed.attached) == ("work", True)
        assert (code, '"name": "work"' in out) == (0, True)
        assert await attachments.kept(job.id) == ()
        assert await muster(fleet, "shell", job.id, "--list") == (
            0,
            f"{job.id} has no kept shells; `muster shell {job.id} --keep NAME` opens one\n",
            "",
        )


async def test_attach_at_a_terminal_types_into_the_program_leaves_it_and_comes_back(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running(talks("stty -echo; echo up; while read line; do echo got $line; done; exit 4"))
        async with at_terminal(fleet, "attach", job.id) as first:
            await first.until(b"up\r\n")
            first.type(b"one\r")
            await first.until(b"got one")
            first.type(b"~?")
            await first.until(b"leave; what runs there goes on")
            first.type(b"~.")
            await first.until(b"which goes on")
            assert await first.code() == 130
        async with at_terminal(fleet, "attach", "talks") as second:
            await second.until(b"got one")  # as it was shown before
            second.type(b"\x04")
            assert await second.code() == 4


async def test_attach_passes_on_what_comes_on_stdin_and_shows_the_log(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running(reads("while read line; do echo got $line; done; exit 5"))
        code, out, err = await muster(fleet, "attach", job.id, given=b"one\ntwo\n")

        assert (code, out) == (5, "[0] got one\n[0] got two\n")
        assert "rank 0 of reads reads what you type" in err


async def test_attach_to_any_other_job_follows_its_log_and_says_so(tmp_path: Path) -> None:
    spec = JobSpec(name="plain", roles=(Role(command=("sh", "-c", "echo one; sleep 1; echo two; exit 6")),))
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running(spec)
        code, out, err = await muster(fleet, "attach", job.id)

        assert (code, out) == (6, "[0] one\n[0] two\n")
        assert "plain has neither `tty` nor `stdin`; the log of all ranks follows" in err


async def test_run_gives_rank_0_of_several_workers_what_comes_on_stdin(tmp_path: Path) -> None:
    script = 'cat > got; echo "$MUSTER_RANK $(wc -c < got)"; exit $((7 * (MUSTER_RANK == 0)))'
    async with attaching_fleet(tmp_path) as fleet:
        code, out, _ = await muster(fleet, "run", "-i", "-N", "2", "--", "sh", "-c", script, given=b"x" * 300_000)

        lines = sorted(line.partition("] ")[2] or line for line in out.splitlines())
        assert (code, lines) == (7, ["0 300000", "1 0"])


async def test_run_gives_rank_0_of_several_workers_the_terminal(tmp_path: Path) -> None:
    script = (
        'if [ $MUSTER_RANK = 1 ]; then exit 0; fi; stty -echo; printf "name? "; read name; echo hello $name; exit 8'
    )
    async with (
        attaching_fleet(tmp_path) as fleet,
        at_terminal(fleet, "run", "-t", "-N", "2", "--", "sh", "-c", script) as program,
    ):
        await program.until(b"name? ")
        program.type(b"ann\r")
        await program.until(b"hello ann")
        assert await program.code() == 8
