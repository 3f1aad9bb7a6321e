"""The synchronous client: the same answers without an event loop, in scripts, threads, notebooks, and under Ctrl-C."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from muster import Client, SyncClient, errors
from muster.domain.event import FleetEvent, FleetEventKind, NodeEvent, NodeEventKind
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView, LogLine
from muster.rpc.v1 import jobs_pb2
from tests.integration.canned_coordinator import Broken, Canned, Pause, serving

ROOT = Path(__file__).parents[2]
AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
SPEC = JobSpec(name="ring", roles=(Role(count=3, command=("python", "ring.py")),))
LIMIT = 60.0

Serve = Callable[[Canned], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a coordinator that answers from values; stopped after the test."""
    with ExitStack() as running:
        yield lambda canned: running.enter_context(serving(canned))


def job(id_: str = "j1", phase: JobPhase = JobPhase.RUNNING) -> JobView:
    return JobView(id=JobId(id_), spec=SPEC, phase=phase, summary="", submitted_at=AT)


def line(seconds: float, text: str) -> LogLine:
    return LogLine(rank=0, stream="stdout", time=AT + timedelta(seconds=seconds), text=text.encode())


def test_questions_are_answered_as_they_are_with_asyncio(serve: Serve) -> None:
    canned = Canned()

    with SyncClient(serve(canned)) as client:
        accepted = client.jobs.submit(SPEC)
        assert client.jobs.get("new1") == accepted
        assert client.nodes.list() == ()

    assert accepted.spec == SPEC


def test_stories_of_nodes_and_of_the_fleet_are_read_as_they_are_with_asyncio(serve: Serve) -> None:
    lost = NodeEvent(node=NodeId("a"), kind=NodeEventKind.LOST, at=AT, number=1)
    back = replace(lost, kind=NodeEventKind.BACK, number=4)
    added = FleetEvent(kind=FleetEventKind.PROJECT_ADDED, at=AT, project="vision", number=2)
    canned = Canned(node_events=[[lost, Broken.UNAVAILABLE], [back]], fleet_events=[[added]])

    with SyncClient(serve(canned)) as client:
        assert list(client.nodes.events("a", follow=True)) == [lost, back]
        assert list(client.fleet.events(after=1)) == [added]

    assert [asked.after for asked in canned.asked] == [0, 1, 1]


def test_errors_are_those_of_the_asynchronous_client(serve: Serve) -> None:
    address = serve(Canned(refusals=[(Broken.NOT_FOUND, "no job is called ring")]))

    with SyncClient(address) as client, pytest.raises(errors.UnknownNameError, match="no job is called ring"):
        client.jobs.get("ring")
    with SyncClient("127.0.0.1:1", timeout=2) as client, pytest.raises(errors.UnavailableError) as caught:
        client.jobs.get("ring")
    assert caught.value.address == "127.0.0.1:1"


def test_more_items_than_are_fetched_ahead_all_come_in_order(serve: Serve) -> None:
    canned = Canned(jobs=[job(f"j{number}") for number in range(1200)], page=100)

    with SyncClient(serve(canned)) as client:
        assert [found.id for found in client.jobs.list()] == [f"j{number}" for number in range(1200)]


def test_a_slow_reader_does_not_have_everything_fetched(serve: Serve) -> None:
    canned = Canned(jobs=[job(f"j{number}") for number in range(2000)], page=100)

    with SyncClient(serve(canned)) as client, client.jobs.list() as found:
        assert next(found).id == "j0"
        assert len(canned.asked) <= 4

    assert list(found) == []


def test_a_stream_breaks_and_goes_on(serve: Serve) -> None:
    canned = Canned(jobs=[job()], logs=[[line(1, "one"), Broken.UNAVAILABLE], [line(1, "one"), line(2, "two")]])

    with SyncClient(serve(canned)) as client:
        assert [said.text for said in client.jobs.logs("j1", follow=True)] == [b"one", b"two"]


def test_waiting_has_a_limit_for_jobs_and_for_items(serve: Serve) -> None:
    canned = Canned(jobs=[job()], watches=[[job(), Pause.FOR_EVER], [job(), Pause.FOR_EVER]])

    with SyncClient(serve(canned)) as client:
        with pytest.raises(TimeoutError):
            client.jobs.wait("j1", timeout=0.2)
        with client.jobs.watch("j1") as views:
            assert views.next(timeout=LIMIT) == job()
            with pytest.raises(TimeoutError, match=r"nothing came within 0\.1 s"):
                views.next(timeout=0.1)


def test_a_stream_that_nobody_has_any_more_is_closed(serve: Serve) -> None:
    canned = Canned(jobs=[job()], watches=[[job(), Pause.FOR_EVER]] * 10)

    with SyncClient(serve(canned)) as client:
        for _ in range(10):  # more than the coordinator answers at once
            assert next(client.jobs.watch("j1")) == job()
            gc.collect()
        assert client.jobs.get("j1") == job()


def test_several_threads_ask_at_once(serve: Serve) -> None:
    canned = Canned(jobs=[job(f"j{number}") for number in range(20)])
    found: list[str] = []

    with SyncClient(serve(canned)) as client:
        threads = [
            threading.Thread(target=lambda each=number: found.append(client.jobs.get(f"j{each}").id))
            for number in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)

    assert sorted(found) == sorted(f"j{number}" for number in range(20))


async def test_it_works_where_an_event_loop_runs_already_as_in_a_notebook(serve: Serve) -> None:
    assert asyncio.get_running_loop().is_running()
    address = serve(Canned(jobs=[job()]))

    with SyncClient(address) as client:
        assert [found.id for found in client.jobs.list()] == ["j1"]
    async with Client(address) as other:
        assert (await other.jobs.get("j1")).id == "j1"


def test_a_client_opens_and_closes_without_a_block_and_opens_again(serve: Serve) -> None:
    client = SyncClient(serve(Canned(jobs=[job()]))).open()
    assert client.jobs.get("j1") == job()
    client.close()
    with pytest.raises(errors.ClientNotOpenError):
        client.jobs.get("j1")
    client.open()
    assert client.jobs.get("j1") == job()
    client.close()


def test_a_client_that_is_not_open_says_how_to_open_it() -> None:
    with pytest.raises(errors.ClientNotOpenError, match=r"not open: use it in `async with Client\(\) as client:`"):
        SyncClient("127.0.0.1:1").jobs.get("j1")


async def test_neither_can_the_asynchronous_one_be_used_before_it_is_open() -> None:
    with pytest.raises(errors.ClientNotOpenError, match="not open"):
        await Client("127.0.0.1:1").jobs.get("j1")
    with pytest.raises(errors.ClientNotOpenError, match="not open"):
        await anext(Client("127.0.0.1:1").jobs.watch("j1"))


def test_what_is_wrong_with_a_job_is_told_with_its_place_before_anything_is_sent(serve: Serve) -> None:
    canned = Canned()

    with SyncClient(serve(canned)) as client:
        with pytest.raises(errors.InvalidJobError, match="is one text") as typed:
            client.jobs.submit(JobSpec(name="x", roles=(Role(command="echo hi"),)))  # type: ignore[arg-type]  # what is refused
        with pytest.raises(errors.InvalidJobError) as valued:
            client.jobs.submit(JobSpec(name="x", roles=(Role(command=("true",), count=0),)))
        with pytest.raises(errors.JobsRefusedError) as many:
            client.jobs.submit_many([SPEC, JobSpec(name="x", roles=(Role(env={"A": 1}),))])  # type: ignore[dict-item]  # what is refused

    assert [fault.path for fault in typed.value.faults] == [("roles", 0, "command")]
    assert [fault.path for fault in valued.value.faults] == [("roles", 0, "count")]
    assert list(many.value.refused) == [1]
    assert canned.asked == []


SCRIPT = """
import sys
from muster import SyncClient
with SyncClient(sys.argv[1]) as client:
    print("waits", flush=True)
    try:
        {what}
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""

INTERRUPTS_ITSELF = """
import _thread, sys, threading
def interrupt():
    sys.stdin.readline()
    _thread.interrupt_main()
threading.Thread(target=interrupt).start()
"""


@pytest.mark.parametrize("what", ["client.jobs.wait('j1')", "list(client.jobs.watch('j1'))"])
def test_ctrl_c_ends_whatever_it_waits_for(serve: Serve, what: str) -> None:
    canned = Canned(jobs=[job()], watches=[[job(), Pause.FOR_EVER]])
    command = [sys.executable, "-c", SCRIPT.format(what=what), serve(canned)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "waits\n"
            with canned.heard:
                assert canned.heard.wait_for(lambda: canned.asked_for(jobs_pb2.WatchRequest), LIMIT)
            program.send_signal(signal.SIGINT)
            said, _ = program.communicate(timeout=LIMIT)
        finally:
            program.kill()
    assert (program.returncode, said) == (0, "interrupted\n")


@pytest.mark.parametrize("what", ["client.jobs.wait('j1')", "list(client.jobs.watch('j1'))"])
def test_a_ctrl_c_that_interrupts_no_wait_of_the_operating_system_is_heard_too(serve: Serve, what: str) -> None:
    # Python took note of the signal, but the wait had not begun: as if `_thread.interrupt_main` had been called.
    canned = Canned(jobs=[job()], watches=[[job(), Pause.FOR_EVER]])
    command = [sys.executable, "-c", INTERRUPTS_ITSELF + SCRIPT.format(what=what), serve(canned)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            with canned.heard:
                assert canned.heard.wait_for(lambda: canned.asked_for(jobs_pb2.WatchRequest), LIMIT)
            said, _ = program.communicate("now\n", timeout=LIMIT)
        finally:
            program.kill()
    assert (program.returncode, said) == (0, "waits\ninterrupted\n")


def test_a_program_that_leaves_its_client_open_ends_without_a_word(serve: Serve) -> None:
    script = "import sys; from muster import SyncClient; print(SyncClient(sys.argv[1]).open().jobs.get('j1').id)"
    command = [sys.executable, "-c", script, serve(Canned(jobs=[job()]))]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=LIMIT
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "j1\n", "")
