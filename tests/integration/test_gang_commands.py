"""Commands between the executions of a gang, over the peer ports of its nodes: real doors, companions and TLS."""

import asyncio
import hashlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import grpc
import grpc.aio
import pytest

from agent.attach.caller import GangRefusedError
from agent.attach.for_peers import MOST_COMMANDS_OF_ONE_EXECUTION
from agent.attach.remote_command import COMMAND_OPTIONS
from agent.core.actions import AskPeers
from agent.core.door.gang_rules import signed
from agent.core.door.packets import GangCommandAsked, GangInput, GangInputEnd, GangSignal, Targets
from agent.fencing.peers import PeerClient
from agent.identity.peers import open_peer_channel
from agent.logs.mask import Mask
from muster.domain.attachments.frame import (
    COMMAND_NONCE,
    AttachmentEnded,
    AttachmentFrame,
    AttachmentInputEnd,
    AttachmentOpened,
    AttachmentOutput,
    GangCommand,
)
from muster.domain.gangs.fence import PeerWord, Witness
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.rpc.v1 import agents_pb2_grpc
from muster.rpc.v1 import attachments_pb2 as pb
from muster.wire.attachments.frames import attachment_frame_from_wire, attachment_frame_to_wire
from tests.integration.attempt_part import ATTEMPT, SECRET, A, B
from tests.integration.gang_nodes import LIMIT, GangNode, HeldCaller, HeldStream, NamedPipe, gang, three
from tests.integration.peer_certificates import shown_by

MUCH = 20_000_000
C = NodeId("c")
SHOWN_BY_A = shown_by(A)
Call: TypeAlias = "grpc.aio.StreamStreamCall[pb.AttachmentFrame, pb.AttachmentFrame]"


async def test_output_error_output_and_exit_code_come_from_another_node(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        caller = await nodes["a"].call("muster-exec", "worker-1", "sh", "-c", "echo out; echo err >&2; exit 3")
        assert (await caller.communicate(), caller.returncode) == ((b"out\n", b"err\n"), 3)


async def test_a_word_alone_is_a_line_for_the_shell_and_variables_are_set(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        caller = await nodes["a"].call("muster-exec", "-e", "A=b", "2", "echo $A; exit 4")
        assert ((await caller.communicate())[0], caller.returncode) == (b"b\n", 4)


async def test_a_command_for_an_execution_of_the_same_node_stays_there(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        await nodes["a"].fall_silent()
        await nodes["b"].fall_silent()
        caller = await nodes["b"].call("muster-exec", "2", "echo here")
        assert ((await caller.communicate())[0], caller.returncode) == (b"here\n", 0)


async def test_much_goes_both_ways_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        sent = os.urandom(1 << 16) * (MUCH >> 16)
        caller = await nodes["a"].call("muster-exec", "1", "cat", stdin=subprocess.PIPE)
        output, _ = await caller.communicate(sent)
        assert (hashlib.sha256(output).digest(), caller.returncode) == (hashlib.sha256(sent).digest(), 0)


async def test_a_command_goes_on_after_the_end_of_its_input(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        caller = await nodes["a"].call("muster-exec", "1", "sh", "-c", "wc -c; echo more", stdin=subprocess.PIPE)
        output, _ = await caller.communicate(b"12345")
        assert (output.split(), caller.returncode) == ([b"5", b"more"], 0)


async def test_a_signal_reaches_the_command(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        caller = HeldCaller()
        line = "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
        running = asyncio.create_task(nodes["a"].run(caller, "1", line))
        await caller.until_printed(b"ready\n")
        caller.says.put_nowait(GangSignal(number=signal.SIGTERM))
        assert (await running, bytes(caller.printed)) == (7, b"ready\ncaught\n")


@pytest.mark.parametrize(("word", "code"), [("no-such-program", 127), ("/etc/passwd", 126)])
async def test_a_program_that_cannot_run_is_told_as_a_shell_does(tmp_path: Path, word: str, code: int) -> None:
    async with three(tmp_path) as nodes:
        caller = HeldCaller()
        assert await nodes["a"].run(caller, "1", word, "x") == code
        assert caller.errors.startswith(word.encode())


async def test_one_command_in_all_executions_tells_them_apart_and_ends_with_the_highest_code(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        caller = await nodes["a"].call("muster-exec", "-n", "--all", "sh", "-c", "echo one; printf two")
        output, _ = await caller.communicate()
        assert sorted(output.splitlines()) == [b"[0] one", b"[0] two", b"[1] one", b"[1] two", b"[2] one", b"[2] two"]
        held = HeldCaller()
        asked = GangCommandAsked(targets=Targets.RANKS, target="0,2", words=("cat; exit 3",), has_input=True)
        running = asyncio.create_task(nodes["a"].ask(held, asked))
        held.says.put_nowait(GangInput(data=b"x\n"))
        held.says.put_nowait(GangInputEnd())
        assert await running == 3
        assert sorted(held.printed.splitlines()) == [b"[0] x", b"[2] x"]


async def test_the_log_of_an_execution_tells_what_others_start_there_without_its_secrets(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        nodes["b"].site.masked = Mask.of([b"hunter2"])
        assert await nodes["a"].run(HeldCaller(), "1", "true", "hunter2\n\x1b[31m") == 0
        assert nodes["b"].log(1) == ["[muster] rank 0 started: true ***\\n\\x1b[31m"]
        assert nodes["b"].log(2) == nodes["a"].log(0) == []


async def test_a_command_is_hung_up_when_its_caller_is_gone(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        with closing(NamedPipe(tmp_path / "gone")) as gone:
            line = (
                f"exec 2>/dev/null; trap 'echo hung up > {gone.path}; exit' HUP; echo up; while :; do sleep 0.05; done"
            )
            caller = await nodes["a"].call("muster-exec", "1", line)
            assert await first_line(caller) == b"up\n"
            caller.kill()
            await caller.communicate()
            assert await gone.line() == b"hung up\n"


async def test_a_daemon_goes_on_without_its_caller_and_prints_into_the_log(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        with closing(NamedPipe(tmp_path / "go")) as go:
            # What is on its way when the caller dies is lost, so it says the same again and again.
            line = f"echo up; read x < {go.path}; while :; do echo later; echo bad >&2; sleep 0.05; done"
            caller = await nodes["a"].call("muster-rsh", "1", line)
            assert await first_line(caller) == b"up\n"
            caller.kill()
            await caller.communicate()
            go.tell()
            await nodes["b"].until_logged(1, "later")
            await nodes["b"].until_logged(1, "bad")


async def test_an_agent_that_goes_away_ends_lines_and_leaves_daemons(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        with closing(NamedPipe(tmp_path / "go")) as go, closing(NamedPipe(tmp_path / "told")) as told:
            waiting = await nodes["a"].call("muster-exec", "1", "echo up; exec sleep 1000")
            daemon = await nodes["a"].call("muster-rsh", "1", f"echo up; read x < {go.path}; echo on > {told.path}")
            assert await first_line(waiting) == b"up\n"
            assert await first_line(daemon) == b"up\n"
            await nodes["b"].fall_silent()
            _, errors = await waiting.communicate()
            assert (waiting.returncode, errors) == (255, b"muster-exec: the line to the agent of b was lost\n")
            await daemon.communicate()
            assert daemon.returncode == 0
            go.tell()
            assert await told.line() == b"on\n"
        await nodes["b"].answer()
        assert await nodes["a"].run(HeldCaller(), "1", "exit 5") == 5


async def test_a_name_that_is_no_member_is_said_so(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        caller = await nodes["a"].call("muster-exec", "gpu-9", "true")
        _, errors = await caller.communicate()
        text = b"muster-exec: gpu-9 is no member of this attempt (members: worker-0 \xe2\x80\xa6 worker-2)\n"
        assert (caller.returncode, errors) == (255, text)


async def test_a_node_without_a_port_for_others_is_said_so(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        part = nodes["a"].site.gang
        assert part is not None
        assert part.roster is not None
        nodes["a"].site.gang = replace(part, roster=replace(part.roster, peer_ports=("0", "0", "0")))
        with pytest.raises(GangRefusedError, match="the agent of b has no port for other agents"):
            await nodes["a"].run(HeldCaller(), "1", "true")


async def test_a_node_that_cannot_be_reached_is_said_so(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        await nodes["b"].fall_silent()
        nodes["a"].lose_patience()
        with pytest.raises(
            GangRefusedError, match=r"the agent of b cannot be reached at 127\.0\.0\.1:\d+; that port must"
        ):
            await nodes["a"].run(HeldCaller(), "1", "true")


async def test_a_member_that_starts_later_is_waited_for(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        part = nodes["b"].site.gang
        assert part is not None
        nodes["b"].site.gang = replace(part, running={}, ahead=frozenset({1, 2}))
        running = asyncio.create_task(nodes["a"].run(HeldCaller(), "1", "exit 6"))
        asyncio.get_running_loop().call_later(0.3, setattr, nodes["b"].site, "gang", part)
        assert await running == 6


async def test_a_member_that_has_ended_is_said_so(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        part = nodes["b"].site.gang
        assert part is not None
        nodes["b"].site.gang = replace(part, running={2: part.running[2]})
        with pytest.raises(GangRefusedError, match="rank 1 does not run on b, or not any more"):
            await nodes["a"].run(HeldCaller(), "1", "true")


async def test_an_agent_without_a_roster_is_not_asked_for_long(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        nodes["a"].site.gang = None
        nodes["a"].lose_patience()
        with pytest.raises(GangRefusedError, match="has just started and has not heard from the coordinator"):
            await nodes["a"].run(HeldCaller(), "1", "true")


async def test_another_secret_is_refused(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        part = nodes["a"].site.gang
        assert part is not None
        nodes["a"].site.gang = replace(part, secret=b"another")
        with pytest.raises(GangRefusedError, match="not signed with the secret"):
            await nodes["a"].run(HeldCaller(), "1", "true")


async def test_another_attempt_is_refused(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        part = nodes["a"].site.gang
        assert part is not None
        nodes["a"].site.gang = replace(part, attempt=AttemptId(JobId("j"), 2))
        with pytest.raises(GangRefusedError, match="nothing of this attempt is here"):
            await nodes["a"].run(HeldCaller(), "1", "true")


async def test_a_node_that_shows_the_certificate_of_another_one_is_refused(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        nodes["a"].shown = shown_by(C)
        with pytest.raises(GangRefusedError, match="not that of the node that shows itself"):
            await nodes["a"].run(HeldCaller(), "1", "true")


async def test_a_node_speaks_for_no_rank_of_another_one(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        refused = await refusal(nodes["b"], command(from_rank=1))
        assert refused == (grpc.StatusCode.PERMISSION_DENIED, "rank 1 of this attempt is not on a")


async def test_a_command_that_was_sent_before_is_refused(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        sent = command()
        assert await first_answer(nodes["b"], sent) == AttachmentOpened()
        refused = await refusal(nodes["b"], sent)
        assert refused == (grpc.StatusCode.PERMISSION_DENIED, "the same command was sent before")


async def test_whoever_asks_for_nothing_is_refused(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        code, _ = await refusal(nodes["b"], AttachmentInputEnd())
        assert code is grpc.StatusCode.PERMISSION_DENIED
        code, _ = await refusal(nodes["b"], pb.AttachmentFrame(signal=99))
        assert code is grpc.StatusCode.INVALID_ARGUMENT


async def test_one_command_too_many_of_one_execution_is_refused(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes, AsyncExitStack() as stack:
        for _ in range(MOST_COMMANDS_OF_ONE_EXECUTION):
            call = await stack.enter_async_context(called(nodes["b"], command("cat", has_input=True)))
            assert await heard(call) == AttachmentOpened()
        refused = await refusal(nodes["b"], command())
        assert refused == (grpc.StatusCode.RESOURCE_EXHAUSTED, "64 commands of this execution run on b already")


async def test_commands_leave_questions_their_room(tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT), gang(tmp_path, shown_by, most_commands=3, a=[0], b=[1]) as nodes:
        async with AsyncExitStack() as stack:
            for _ in range(3):
                call = await stack.enter_async_context(called(nodes["b"], command("cat", has_input=True)))
                assert await heard(call) == AttachmentOpened()
            code, text = await refusal(nodes["b"], command())
            assert (code, text) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "3 commands of other nodes run on b already")
            client = PeerClient(A, lambda: SHOWN_BY_A)
            witness = Witness(node=B, address=f"127.0.0.1:{nodes['b'].port}")
            ask = AskPeers(attempt=ATTEMPT, asked_at=0.0, witnesses=(witness,), key=SECRET)
            assert await client.ask(ask, LIMIT) == {B: PeerWord.WITHOUT}
            await client.close()
        assert await nodes["a"].run(HeldCaller(), "1", "exit 5") == 5, "there is room again"


async def test_what_is_not_read_is_not_printed_further(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        line = f"head -c {MUCH} /dev/zero; echo > {tmp_path}/done"
        async with called(nodes["b"], command("sh", "-c", line)) as call:
            assert await heard(call) == AttachmentOpened()
            assert await nodes["a"].run(HeldCaller(), "2", f"head -c {MUCH} /dev/zero") == 0
            assert not (tmp_path / "done").exists()
            read = 0
            while not isinstance(frame := await heard(call), AttachmentEnded):
                assert isinstance(frame, AttachmentOutput)
                read += len(frame.data)
            assert (read, frame) == (MUCH, AttachmentEnded(code=0))
        assert (tmp_path / "done").exists()


async def test_a_call_lasts_until_the_agent_that_asked_has_hung_up(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes:
        stream = HeldStream(command("exit 4", has_input=True))
        serving = asyncio.create_task(nodes["b"].for_peers.serve(stream, lambda _: True))
        assert [await stream.told.get() for _ in range(2)] == [AttachmentOpened(), AttachmentEnded(code=4)]
        stream.says.put_nowait(AttachmentInputEnd())
        stream.says.put_nowait(None)
        await serving
        assert stream.says.empty()


async def first_line(caller: asyncio.subprocess.Process) -> bytes:
    """The first line that a program prints."""
    assert caller.stdout is not None
    return await caller.stdout.readline()


def command(*words: str, from_rank: int = 0, has_input: bool = False) -> GangCommand:
    """A command of node a for rank 1 on node b."""
    made = GangCommand(
        job=ATTEMPT.job,
        attempt=ATTEMPT.number,
        from_rank=from_rank,
        to_rank=1,
        node=A,
        nonce=os.urandom(COMMAND_NONCE),
        words=words or ("true",),
        has_input=has_input,
    )
    return signed(made, SECRET, B)


@asynccontextmanager
async def called(node: GangNode, first: AttachmentFrame | pb.AttachmentFrame) -> "AsyncIterator[Call]":
    """A call of node a with this as its first frame."""
    async with open_peer_channel(f"127.0.0.1:{node.port}", node.name, SHOWN_BY_A, COMMAND_OPTIONS) as channel:
        stub: agents_pb2_grpc.PeerServiceAsyncStub = agents_pb2_grpc.PeerServiceStub(channel)
        call = stub.Run()
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # it may be refused before
            await call.write(first if isinstance(first, pb.AttachmentFrame) else attachment_frame_to_wire(first))
        yield call


async def heard(call: "Call") -> AttachmentFrame:
    """The next frame."""
    message = await call.read()
    assert isinstance(message, pb.AttachmentFrame)
    return attachment_frame_from_wire(message)


async def first_answer(
    node: GangNode, first: AttachmentFrame | pb.AttachmentFrame
) -> AttachmentFrame | tuple[grpc.StatusCode, str | None]:
    """What a call is answered first, or how it is refused."""
    async with called(node, first) as call:
        try:
            return await heard(call)
        except grpc.aio.AioRpcError as error:
            return error.code(), error.details()


async def refusal(node: GangNode, first: AttachmentFrame | pb.AttachmentFrame) -> tuple[grpc.StatusCode, str | None]:
    """How a call is refused."""
    answer = await first_answer(node, first)
    assert isinstance(answer, tuple), answer
    return answer
