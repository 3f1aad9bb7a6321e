"""Somebody attaches to containers on a fleet that speaks TLS, while its programs and its network break."""

import asyncio
import os
from collections.abc import Callable
from functools import partial

import pytest

from muster.client.attachments.attachment import Attachment
from muster.domain.attachments.frame import AttachmentEnded, AttachmentInput, AttachmentOutput, AttachmentTrouble
from muster.domain.attachments.request import CommandRequest, MainProgramRequest, TerminalSize
from tests.e2e.command_line import CLI
from tests.e2e.deployment import Deployment
from tests.e2e.engine import Daemon
from tests.e2e.programs import Program
from tests.e2e.waiting import until
from tests.integration.attaching import KEPT, digest, echo, ended, typed

MUCH = os.urandom(30_000_000)

CUT = 5.0
"""Seconds for which the link of a client is cut."""

COMPANION_KILLED = "the companion of the execution was killed"

Break = Callable[[Deployment, Program], None]
"""What breaks while bytes flow, and is whole again when it returns; gets the relay."""


def _job(size: int) -> dict[str, object]:
    return {
        "name": "dev",
        "image": "muster/busybox:latest",
        "pull": "never",
        "workers": size,
        "command": ["sleep", "1000"],
        "placement": "spread",
        "env": {"WHO": "everybody"},
    }


def _attachable(muster: Deployment, size: int, **keys: object) -> tuple[str, Program]:
    """A job of containers that run, and the relay."""
    relay = muster.start_relay()
    muster.start_agents(*muster.fleet.nodes[:size])
    job = muster.submit(_job(size) | keys)
    muster.await_states(job, ["running"] * size)
    return job, relay


@pytest.mark.fleet
def test_a_command_runs_in_every_container_and_in_one(muster: Deployment) -> None:
    job, _ = _attachable(muster, 3)

    everywhere = muster.run("exec", job, "--all", "--", "sh", "-c", "echo $WHO at $MUSTER_RANK")
    alone = muster.run("exec", job, "--rank", "2", "--", "sh", "-c", "echo oh >&2; exit 5")
    missing = muster.run("exec", job, "--", "nosuch")

    assert (everywhere.code, sorted(everywhere.out.splitlines())) == (
        0,
        ["[0] everybody at 0", "[1] everybody at 1", "[2] everybody at 2"],
    )
    assert (alone.code, alone.out, alone.err) == (5, "", "oh\n")
    assert (missing.code, missing.err) == (127, "nosuch: not found in the execution\n")


def _kill_both(muster: Deployment, relay: Program) -> None:
    relay.kill()
    muster.coordinator.kill()
    muster.start_coordinator()
    muster.start_relay()


def _kill_dockerd(muster: Deployment, _: Program) -> None:
    engine = muster.fleet.nodes[0].engine
    engine.daemons[Daemon.DOCKERD].kill()
    engine.restart(Daemon.DOCKERD)
    engine.await_ready()


def _cut_the_link(muster: Deployment, _: Program) -> None:
    node = muster.fleet.nodes[0]
    node.partition()
    until(lambda: muster.ask("nodes")[0]["state"] != "ready", within=60, what="the node to be missed")
    node.heal()


@pytest.mark.fleet
@pytest.mark.parametrize(
    "breaks",
    [
        pytest.param(_kill_both, id="relay and coordinator are killed"),
        pytest.param(_kill_dockerd, id="dockerd is killed"),
        pytest.param(_cut_the_link, id="the link of the node is cut"),
    ],
)
def test_whatever_breaks_while_bytes_flow_both_ways_all_of_them_come(muster: Deployment, breaks: Break) -> None:
    job, relay = _attachable(muster, 1)

    async def echoed() -> tuple[bytes, AttachmentEnded]:
        halfway = asyncio.Event()
        async with muster.client as client, echo(client, job, MUCH, halfway) as cat:
            await halfway.wait()
            await asyncio.to_thread(partial(breaks, muster, relay))
            return await cat.ended()

    output, end = asyncio.run(echoed())

    assert (digest(output), end) == (digest(MUCH), AttachmentEnded(code=0))


@pytest.mark.fleet
def test_a_main_program_at_a_terminal_goes_on_while_dockerd_is_killed(muster: Deployment) -> None:
    relay = muster.start_relay()
    muster.start_agents(muster.fleet.nodes[0])
    script = "stty -echo; while read line; do echo got $line; done; exit 3"
    job = muster.submit({**_job(1), "command": ["sh", "-c", script], "tty": True})
    muster.await_states(job, ["running"])

    async def talked() -> AttachmentEnded:
        request = MainProgramRequest(terminal=TerminalSize(rows=30, columns=90))
        async with muster.client as client, await client.attachments.open(job, request) as hand:
            await _answered(hand, b"one\n", b"got one\r\n")
            await asyncio.to_thread(_kill_dockerd, muster, relay)
            await _answered(hand, b"two\n", b"got two\r\n")
            await hand.send(AttachmentInput(data=b"\x04"))
            return (await ended(hand))[1]

    end = asyncio.run(asyncio.wait_for(talked(), 120))
    muster.ended(job)  # who attaches before the coordinator has heard of it is told that the execution has ended
    followed = muster.run("attach", job)

    assert end == AttachmentEnded(code=3)
    assert (followed.code, followed.out) == (3, "[0] got one\n[0] got two\n")


async def _answered(hand: Attachment, typed: bytes, answer: bytes) -> None:
    """Type, and wait until something is shown."""
    await hand.send(AttachmentInput(data=typed))
    seen = b""
    while answer not in seen:
        frame = await hand.receive()
        assert not isinstance(frame, AttachmentEnded), (seen, frame)
        seen += frame.data if isinstance(frame, AttachmentOutput) else b""


@pytest.mark.fleet
def test_a_client_whose_own_link_is_cut_for_a_while_loses_nothing(muster: Deployment) -> None:
    job, _ = _attachable(muster, 1)
    client = muster.fleet.nodes[1]  # no agent runs there
    given, output = muster.directory / "given", muster.directory / "output"
    given.write_bytes(MUCH * 4)
    line = f"exec {CLI} exec {job} -- cat <{given} >{output}"
    exec_ = client.start(["sh", "-c", line], log=muster.directory / "exec.log", env=muster.env)

    until(lambda: output.exists() and output.stat().st_size > len(MUCH) // 2, within=60, what="some output")
    client.partition()
    assert output.stat().st_size < given.stat().st_size
    client.run("sleep", str(CUT))
    assert exec_.running, exec_.output
    client.heal()

    assert exec_.wait(within=60) == 0, exec_.output
    assert digest(output.read_bytes()) == digest(given.read_bytes())


@pytest.mark.fleet
def test_an_agent_that_is_killed_ends_what_flows_with_a_sentence_and_leaves_a_kept_shell(muster: Deployment) -> None:
    job, _ = _attachable(muster, 1)
    node = muster.fleet.nodes[0]

    async def ends() -> tuple[bytes, AttachmentEnded, bytes]:
        halfway = asyncio.Event()
        async with muster.client as client:
            async with await client.attachments.open(job, KEPT) as shell, echo(client, job, MUCH, halfway) as cat:
                await typed(shell, b"word=kept; echo $((6 * 7)) of them\n", b"42 of them\r\n")
                await halfway.wait()
                muster.agents[node.name].kill()
                muster.start_agent(node)
                output, end = await cat.received
            async with await client.attachments.open(job, KEPT) as again:
                shown = await typed(again, b"echo $word; echo $((3 * 3)) times\n", b"9 times\r\n")
        return output, end, shown

    output, end, shown = asyncio.run(asyncio.wait_for(ends(), 120))

    assert MUCH.startswith(output)
    assert (end.trouble, end.text) == (AttachmentTrouble.LOST, "the agent of node1 was restarted")
    assert b"kept\r\n9 times\r\n" in shown


@pytest.mark.fleet
def test_a_companion_that_is_killed_ends_what_is_attached_with_a_sentence_and_another_one_follows(
    muster: Deployment,
) -> None:
    job, _ = _attachable(muster, 1)
    request = CommandRequest(words=("cat",), has_input=True)

    async def ends() -> tuple[bytes, AttachmentEnded]:
        async with muster.client as client, await client.attachments.open(job, request) as cat:
            receiving = asyncio.create_task(ended(cat))
            await cat.send(AttachmentInput(data=MUCH[:100_000]))
            await asyncio.to_thread(_kill_companion, muster, job)
            return await receiving

    output, end = asyncio.run(asyncio.wait_for(ends(), 60))
    again = muster.run("exec", job, "--", "echo", "here")

    assert digest(output) == digest(MUCH[:100_000])
    assert (end.trouble, end.text) == (AttachmentTrouble.LOST, COMPANION_KILLED)
    assert (again.code, again.out) == (0, "here\n")


def _kill_companion(muster: Deployment, job: str) -> None:
    """Kill the parent of a command with SIGKILL."""
    done = muster.run("exec", job, "--", "sh", "-c", "kill -9 $PPID; sleep 1000")
    assert COMPANION_KILLED in done.err, done
