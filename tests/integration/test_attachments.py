"""Somebody attaches to running executions, and whatever is killed meanwhile, no byte is lost or doubled."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.attachments.frame import (
    AttachmentEnded,
    AttachmentInput,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentSignal,
    AttachmentSize,
    AttachmentTrouble,
)
from muster.domain.attachments.request import CommandRequest, ConnectionRequest, OpenedAttachment, TerminalSize
from muster.domain.errors import ConflictError, UnavailableError, UnknownNameError
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec, Role
from tests.integration.attaching import (
    SLEEPER,
    WITHIN,
    AttachingFleet,
    attaching_fleet,
    command,
    digest,
    echo,
    ended,
    told,
)

MUCH = os.urandom(50_000_000)


async def test_a_command_has_the_environment_of_its_execution_and_its_exit_code_is_told(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()

        done = await fleet.client.attachments.run(job.id, ["sh", "-c", "echo rank $MUSTER_RANK; echo oh >&2; exit 3"])

        assert (done.code, done.output, done.error_output, done.rank) == (3, b"rank 0\n", b"oh\n", 0)


async def test_what_is_no_program_is_told_as_a_shell_tells_it(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()

        assert (await fleet.client.attachments.run(job.id, ["nosuch"])).code == 127
        assert (await fleet.client.attachments.run(job.id, ["/etc/passwd"])).code == 126


async def test_a_hundred_megabytes_go_both_ways_and_come_whole(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()

        async with echo(fleet.client, job.id, MUCH + MUCH, asyncio.Event()) as cat:
            output, end = await cat.ended()

        assert digest(output) == digest(MUCH + MUCH)
        assert end == AttachmentEnded(code=0)


@pytest.mark.parametrize("killed", ["relay", "coordinator", "both"])
async def test_whatever_is_killed_while_bytes_flow_both_ways_all_of_them_come(tmp_path: Path, killed: str) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        halfway = asyncio.Event()

        async with echo(fleet.client, job.id, MUCH, halfway) as cat:
            await halfway.wait()
            if killed in {"relay", "both"}:
                await fleet.kill("relay")
            if killed in {"coordinator", "both"}:
                await fleet.kill("coordinator")
                await fleet.start_coordinator()
            if killed in {"relay", "both"}:
                await fleet.start_relay()
            output, end = await cat.ended()

        assert digest(output) == digest(MUCH)
        assert end == AttachmentEnded(code=0)


async def test_an_agent_that_is_killed_ends_what_is_attached_with_a_sentence(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        async with await fleet.client.attachments.open(job.id, command("sleep", "1000")) as attachment:
            assert await attachment.receive() == AttachmentOpened()
            await fleet.kill("agent")
            await fleet.start_agent()

            _, end = await asyncio.wait_for(ended(attachment), WITHIN)

        assert (end.trouble, end.text) == (AttachmentTrouble.LOST, "the agent of alone was restarted")
        assert await fleet.client.attachments.list() == ()


async def test_a_coordinator_that_was_restarted_knows_what_is_attached_and_ends_it(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        async with await fleet.client.attachments.open(job.id, command("sleep", "1000")) as attachment:
            assert await attachment.receive() == AttachmentOpened()
            (before,) = await fleet.client.attachments.list(job.id)
            await fleet.kill("coordinator")
            await fleet.start_coordinator()
            async with asyncio.timeout(WITHIN):
                while not (known := await fleet.client.attachments.list(job.id)):
                    await fleet.client.nodes.list()
            assert [_without_counts(each) for each in known] == [_without_counts(before)]
            await fleet.client.attachments.close(before.attachment)
            _, end = await asyncio.wait_for(ended(attachment), WITHIN)

        assert end.text == "local has closed it"


def _without_counts(listed: OpenedAttachment) -> OpenedAttachment:
    """What stays the same; of bytes the relay tells every few seconds."""
    return replace(listed, bytes_in=0, bytes_out=0)


async def test_a_companion_that_is_killed_ends_its_commands_and_another_one_follows(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        kill = "kill -9 $(awk '/^PPid/ {print $2}' /proc/$$/status); sleep 1000"

        _, end = await told(fleet.client.attachments.open(job.id, command("sh", "-c", kill)))
        again = await fleet.client.attachments.run(job.id, ["echo", "here"])

        assert (end.code, end.text) == (255, "the companion of the execution was killed")
        assert again.output == b"here\n"


async def test_a_terminal_has_its_size_from_the_start_and_another_one_when_that_is_told(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        words = ("sh", "-c", "trap 'stty size; exit 7' WINCH; stty size; while :; do sleep 0.1; done")
        request = CommandRequest(words=words, terminal=TerminalSize(rows=30, columns=100), has_input=True)
        async with await fleet.client.attachments.open(job.id, request) as attachment:
            assert await attachment.receive() == AttachmentOpened()
            assert await attachment.receive() == AttachmentOutput(data=b"30 100\r\n")
            await attachment.send(AttachmentSize(size=TerminalSize(rows=25, columns=90)))
            output, end = await asyncio.wait_for(ended(attachment), WITHIN)

        assert (output, end) == (b"25 90\r\n", AttachmentEnded(code=7))


async def test_ctrl_c_at_a_terminal_interrupts_what_runs_there(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        request = CommandRequest(
            words=("sh", "-c", "echo ready; sleep 1000"), terminal=TerminalSize(rows=24, columns=80), has_input=True
        )
        async with await fleet.client.attachments.open(job.id, request) as attachment:
            assert await attachment.receive() == AttachmentOpened()
            assert await attachment.receive() == AttachmentOutput(data=b"ready\r\n")
            await attachment.send(AttachmentInput(data=b"\x03"))
            _, end = await asyncio.wait_for(ended(attachment), WITHIN)

        assert end == AttachmentEnded(code=130)


async def test_a_signal_reaches_a_command_without_a_terminal(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        words = ("sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.1; done")
        async with await fleet.client.attachments.open(job.id, command(*words)) as attachment:
            assert await attachment.receive() == AttachmentOpened()
            assert await attachment.receive() == AttachmentOutput(data=b"ready\n")
            await attachment.send(AttachmentSignal(number=15))
            _, end = await asyncio.wait_for(ended(attachment), WITHIN)

        assert end == AttachmentEnded(code=9)


async def test_of_whoever_leaves_nothing_stays_open(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()

        async with await fleet.client.attachments.open(job.id, command("sleep", "1000")) as attachment:
            assert await attachment.receive() == AttachmentOpened()
            (listed,) = await fleet.client.attachments.list(job.id)
            assert (listed.account, listed.about, listed.rank) == ("local", "sleep", 0)

        async with asyncio.timeout(WITHIN):
            while await fleet.client.attachments.list(job.id):
                await fleet.client.jobs.get(job.id)


async def test_an_operator_ends_an_attachment(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        async with await fleet.client.attachments.open(job.id, command("sleep", "1000")) as attachment:
            assert await attachment.receive() == AttachmentOpened()
            await fleet.client.attachments.close(attachment.shown.attachment)
            _, end = await asyncio.wait_for(ended(attachment), WITHIN)

        assert (end.trouble, end.text) == (AttachmentTrouble.CLOSED, "local has closed it")


async def test_where_nobody_can_attach_the_sentence_says_why(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        open_ = fleet.client.attachments.open
        waiting = await fleet.client.jobs.submit(
            JobSpec(
                name="waiting", roles=(Role(name="worker", count=1, command=("true",)),), node_labels={"no": "node"}
            ),
            queue_anyway=True,
        )
        job = await fleet.running()
        ended_job = await fleet.client.jobs.wait(
            await fleet.client.jobs.submit(JobSpec(name="short", roles=(Role(name="worker", command=("false",)),)))
        )

        with pytest.raises(ConflictError, match="waiting is queued; --wait waits for it"):
            await open_(waiting.id, command("true"))
        with pytest.raises(UnknownNameError, match="sleeper has rank 0"):
            await open_(job.id, command("true"), rank=1)
        with pytest.raises(ConflictError, match=r"rank 0 of short failed .* its log: muster logs short --rank 0"):
            await open_(ended_job.id, command("true"), rank=0)
        await fleet.kill("relay")
        with pytest.raises(UnavailableError, match="the relay, through which attachments go, is not there"):
            await _until_refused(fleet, job.id)


async def _until_refused(fleet: AttachingFleet, job: str) -> None:
    """Attach again and again, as the coordinator may not have heard yet of what was killed."""
    async with asyncio.timeout(WITHIN):
        while True:
            async with await fleet.client.attachments.open(job, command("true")):
                pass


async def test_a_job_that_ends_ends_what_is_attached(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        fifo = tmp_path / "go"
        os.mkfifo(fifo)
        waits = ("sh", "-c", f"read line < {fifo}; exit 3")
        job = await fleet.running(JobSpec(name="waits", roles=(Role(name="worker", count=1, command=waits),)))
        async with await fleet.client.attachments.open(job.id, command("sleep", "1000")) as attachment:
            assert await attachment.receive() == AttachmentOpened()
            await asyncio.to_thread(fifo.write_text, "go\n")
            _, end = await asyncio.wait_for(ended(attachment), WITHIN)

        assert end == AttachmentEnded(
            code=137, trouble=AttachmentTrouble.ENDED, text="the execution has ended (exit code 3)"
        )


async def test_a_forwarded_port_reaches_what_listens_in_the_execution(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job, port = await _web(fleet)
        async with await fleet.client.attachments.forward(job, port) as forward:
            answers = await asyncio.gather(*(_status(forward.port) for _ in range(200)))
        assert set(answers) == {b"HTTP/1.0 501"}


async def test_a_new_connection_waits_for_a_relay_that_is_away(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job, port = await _web(fleet)
        troubles: list[str] = []
        async with await fleet.client.attachments.forward(job, port, on_trouble=troubles.append) as forward:
            await fleet.kill("relay")
            with pytest.raises(UnavailableError):
                await _until_refused(fleet, job)
            waiting = asyncio.ensure_future(_status(forward.port))
            await fleet.start_relay()
            assert (await waiting, troubles) == (b"HTTP/1.0 501", [])


async def _web(fleet: AttachingFleet) -> tuple[JobId, int]:
    """A job with a web server that refuses all, and its port."""
    serve = (
        "import http.server; http.server.HTTPServer.request_queue_size = 256; "
        "s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.BaseHTTPRequestHandler); "
        "print(s.server_port, flush=True); s.serve_forever()"
    )
    job = await fleet.running(
        JobSpec(name="web", roles=(Role(name="worker", count=1, command=("/usr/bin/python3", "-c", serve)),))
    )
    async with asyncio.timeout(WITHIN):
        async for line in fleet.client.jobs.logs(job, follow=True):
            return job.id, int(line.text)
    raise AssertionError("it has not said its port")


async def _status(forwarded: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", forwarded)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer[:12]


async def test_where_nothing_listens_a_connection_is_reset_and_the_reason_told(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        troubles: list[str] = []
        async with await fleet.client.attachments.forward(job.id, 1, on_trouble=troubles.append) as forward:
            reader, writer = await asyncio.open_connection("127.0.0.1", forward.port)
            with pytest.raises(ConnectionResetError):
                await reader.read()
            writer.close()

        assert troubles == ["nothing listens at port 1 (Connection refused)"]


async def test_a_connection_brings_to_the_end_what_was_sent_before_it_is_half_closed(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        count = (
            "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)\n"
            "c = s.accept()[0]; size = 0\n"
            "while data := c.recv(65536): size += len(data)\n"
            "c.sendall(b'%d' % size)"
        )
        async with await fleet.client.attachments.open(job.id, command("/usr/bin/python3", "-c", count)) as server:
            assert await server.receive() == AttachmentOpened()
            said = await server.receive()
            assert isinstance(said, AttachmentOutput)
            async with await fleet.client.attachments.forward(job.id, int(said.data)) as forward:
                reader, writer = await asyncio.open_connection("127.0.0.1", forward.port)
                writer.write(MUCH)
                writer.write_eof()
                assert await reader.read() == b"%d" % len(MUCH)
                writer.close()


async def test_what_an_attachment_is_about_is_an_address_for_a_connection(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()

        end = await told(fleet.client.attachments.open(job.id, ConnectionRequest(port=1)))

        assert end == (
            b"",
            AttachmentEnded(
                code=1, trouble=AttachmentTrouble.NOT_REACHED, text="nothing listens at port 1 (Connection refused)"
            ),
        )
        assert SLEEPER.name == job.spec.name
