"""Logs as users read them: whole, in order, filtered, followed; and watching a job."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from agent.runtimes.process.record import read_record
from coordinator.store.logs.logs import LogStore
from muster.domain.errors import UnknownNameError
from muster.domain.ids import execution_id
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.restart import RestartPolicy
from muster.domain.jobs.view import JobView, LogLine
from muster.rpc.channel import open_channel
from muster.rpc.v1 import agents_pb2, agents_pb2_grpc
from tests.integration.fleet import SHOWN, executions, python, running_fleet
from tests.integration.jobs import command, shell


async def test_a_follower_that_came_before_the_start_sees_everything_to_the_end(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        job = await fleet.client.jobs.submit(shell("echo out $RANK; echo err $RANK >&2", 2), queue_anyway=True)
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(fleet.output(job.id, follow=True))
            await fleet.start_agent("a")
            lines = await following
    assert sorted((line.rank, line.stream, line.text) for line in lines) == [
        (0, "stderr", b"err 0"),
        (0, "stdout", b"out 0"),
        (1, "stderr", b"err 1"),
        (1, "stdout", b"out 1"),
    ]


async def test_a_follower_of_a_job_that_never_ran_ends_too(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        job = await fleet.client.jobs.submit(shell("true"), queue_anyway=True)
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(fleet.output(job.id, follow=True))
            await fleet.client.jobs.stop(job.id)
            assert await following == []


async def test_a_follower_of_a_job_that_prints_nothing_ends_with_it(tmp_path: Path) -> None:
    """There is no log that could come from its node."""
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("true", 2))
        assert await fleet.output(job.id, follow=True) == []
        ended = await fleet.client.jobs.wait(job.id)
        assert [each.log_complete for each in ended.attempts[-1].executions] == [True, True]
        assert await fleet.output(job.id) == []  # and nobody takes the log for lost


async def test_a_log_whose_last_words_found_no_room_is_complete_only_with_them(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small") as disk:
        async with running_fleet(tmp_path) as fleet:
            await fleet.start_agent("a", state=disk / "state")
            await fleet.connected("a")
            spec = replace(shell("exec sleep 60"), restarts=RestartPolicy(infrastructure=0))
            job = await fleet.client.jobs.submit(spec)
            running = await fleet.until_states(job.id, State.RUNNING)
            record = read_record(disk / "state" / "executions" / executions(running)[0].id)
            assert record is not None
            filler = disk / "filler"
            with filler.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(4096))
            record.supervisor.kill()
            assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.FAILED
            filler.unlink()
            assert [line.text for line in await fleet.output(job.id, follow=True)] == [
                b"[muster] 1 records (67 bytes) of output were lost: No space left on device"
            ]


@contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    directory.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system: {done.stderr}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


async def test_the_last_lines_of_every_rank(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(shell("seq 1000", 2))
        await fleet.output(job.id, follow=True)
        assert sorted(await fleet.texts(job.id, tail=2)) == ["0 1000", "0 999", "1 1000", "1 999"]
        assert await fleet.texts(job.id, tail=0) == []
        assert len(await fleet.texts(job.id, tail=5000)) == 2000


async def test_lines_since_a_time(tmp_path: Path) -> None:
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell(f"echo before; read line < {fifo}; echo after"))
        (before,) = await fleet.printed(job.id, 1)
        await fleet.tell(fifo)
        lines = await fleet.output(job.id, follow=True)
        after = lines[1].time
        assert before.time < after
        assert await fleet.texts(job.id, since=after) == ["0 after"]
        assert await fleet.texts(job.id, since=before.time) == ["0 before", "0 after"]
        assert await fleet.texts(job.id, since=datetime.now(UTC) + timedelta(hours=1)) == []


async def test_lines_of_some_ranks(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(shell("echo $RANK", 4))
        assert sorted(await fleet.texts(job.id, follow=True, ranks=[1, 3])) == ["1 1", "3 3"]
        with pytest.raises(UnknownNameError, match="there is no rank 4"):
            await fleet.texts(job.id, ranks=[4])
        with pytest.raises(UnknownNameError, match="has no attempt 2; its newest is 1"):
            await fleet.texts(job.id, attempt=2)


async def test_a_very_long_line_comes_in_pieces_that_make_it_up(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(command(*python("print('x' * 50_000); print('next')")))
        *pieces, last = await fleet.output(job.id, follow=True)
        assert b"".join(piece.text for piece in pieces) == b"x" * 50_000
        assert [piece.partial for piece in pieces] == [True] * (len(pieces) - 1) + [False]
        assert (last.text, last.partial) == (b"next", False)


async def test_any_bytes_come_through(tmp_path: Path) -> None:
    every = "import sys; sys.stdout.buffer.write(bytes(b for b in range(256) if b != 10) + b'\\n\\n\\xff')"
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(command(*python(every)))
        lines = [line.text for line in await fleet.output(job.id, follow=True)]
        assert lines == [bytes(b for b in range(256) if b != 10), b"", b"\xff"]


async def test_lines_of_several_ranks_are_merged_by_time(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(shell("seq 5000", 2, max_per_node=1))
        await fleet.output(job.id, follow=True)
        times = [line.time for line in await fleet.output(job.id)]
        assert len(times) == 10_000
        assert times == sorted(times)


async def test_lines_whose_times_step_back_are_all_there_and_hold_up_nobody(tmp_path: Path) -> None:
    """Both streams of a container are read apart, so a line of one may come after newer lines of the other."""
    printed = [(5, "stdout", "five"), (7, "stdout", "seven"), (4, "stderr", "four"), (6, "stderr", "six")]
    async with running_fleet(tmp_path) as fleet:
        job = await fleet.client.jobs.submit(shell("true", 2), queue_anyway=True)
        with closing(LogStore(tmp_path / "logs")) as logs:
            records = "".join(
                f"2026-11-21T08:48:0{second}.000000000Z {stream} F {text}\n" for second, stream, text in printed
            )
            for rank in range(2):
                logs.append(execution_id(job.id, 1, rank), 0, records.encode())
        sorted_by_time = ["four", "five", "six", "seven"]
        assert await fleet.texts(job.id) == [f"{rank} {text}" for text in sorted_by_time for rank in range(2)]
        assert await fleet.texts(job.id, ranks=[1]) == [f"1 {text}" for text in sorted_by_time]


async def test_a_log_stays_as_it_was_completed_though_the_next_agent_has_more_of_it(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        job = await fleet.client.jobs.submit(shell("echo 0"), queue_anyway=True)
        execution, record = execution_id(job.id, 1, 0), b"2026-11-21T08:48:00.000000000Z stdout F 1\n"
        await fleet.start_agent("a")
        await fleet.client.jobs.wait(job.id)
        await fleet.output(job.id, follow=True)
        async with open_channel(fleet.address) as channel:
            call = agents_pb2_grpc.AgentServiceStub(channel).PushLogs(metadata=SHOWN.metadata)
            await call.write(
                agents_pb2.LogChunk(node="a", execution=execution, offset=len(record), data=record, last=True)
            )
            ack = await call.read()
            call.cancel()
        assert isinstance(ack, agents_pb2.LogAck)
        assert (ack.complete, ack.offset) == (True, len(record))
        assert await fleet.texts(job.id) == ["0 0"]


async def test_a_reader_that_is_slow_gets_every_line_of_a_long_log(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("seq 200000"))
        async with aclosing(fleet.client.jobs.logs(job.id, follow=True)) as log:
            first = await anext(log)
            # Reads nothing more until the job has ended and all of its log is there.
            ended = await fleet.client.jobs.wait(job.id)
            await fleet.journal.heard("execution cleared away")
            pieces = [first, *[piece async for piece in log]]
        # A line comes in two pieces where the program was not let write its end at once.
        text = b"".join(piece.text if piece.partial else piece.text + b"\n" for piece in pieces)
        assert ended.phase is JobPhase.SUCCEEDED
        assert text.split() == [b"%d" % number for number in range(1, 200_001)]


async def test_a_log_is_complete_when_the_job_says_so(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(shell("seq 3"))
        await fleet.journal.heard("execution cleared away")
        assert (await fleet.client.jobs.get(job.id)).attempts[0].executions[0].log_complete
        assert await fleet.texts(job.id) == ["0 1", "0 2", "0 3"]


async def test_what_a_process_prints_after_its_parent_ended_is_taken_for_a_while(tmp_path: Path) -> None:
    once_it_ended = "while kill -0 $$ 2> /dev/null; do sleep 0.01; done"
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(shell(f"echo first; ({once_it_ended}; echo second) &"))
        assert await fleet.texts(job.id, follow=True) == ["0 first", "0 second"]


async def test_following_a_job_that_is_deleted_ends(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("echo something; exec sleep 60"))
        async with asyncio.TaskGroup() as tasks, aclosing(fleet.client.jobs.logs(job.id, follow=True)) as log:
            assert (await anext(log)).text == b"something"
            rest = tasks.create_task(_rest(log))
            await fleet.client.jobs.delete(job.id, force=True)
            assert await rest == []


async def test_forced_deletion_of_jobs_that_print_a_lot_leaves_the_others_alone(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        long_lines = "yes $(printf %01000d 0) | head -n 3000; exec sleep 60"
        noisy = [await fleet.client.jobs.submit(shell(long_lines, 2)) for _ in range(4)]
        for job in noisy:
            await fleet.printed(job.id, 1)
        async with asyncio.TaskGroup() as tasks:
            for job in noisy:
                tasks.create_task(fleet.client.jobs.delete(job.id, force=True))
        done = await fleet.run(shell("seq 3"))
        assert await fleet.texts(done.id, follow=True) == ["0 1", "0 2", "0 3"]
        assert fleet.journal.said("node disconnected") == []


async def test_a_watcher_that_is_slow_sees_the_end(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.client.jobs.submit(shell("true", 2, max_per_node=1))
        async with aclosing(fleet.client.jobs.watch(job.id)) as views:
            first = await anext(views)
            await fleet.client.jobs.wait(job.id)
            seen = [first, *[view async for view in views]]
        assert seen[-1].phase is JobPhase.SUCCEEDED
        assert all(earlier != later for earlier, later in pairwise(seen))


async def test_many_watch_one_job(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("exec sleep 60"))
        await fleet.until_states(job.id, State.RUNNING)
        async with asyncio.TaskGroup() as tasks:
            watching = [tasks.create_task(_watched(fleet.client.jobs.watch(job.id))) for _ in range(50)]
            await fleet.client.jobs.stop(job.id)
        for each in watching:
            phases = [view.phase for view in each.result()]
            assert phases[-1] is JobPhase.STOPPED
        assert len({each.result()[-1].ended_at for each in watching}) == 1


async def test_watching_a_job_that_is_deleted_says_so(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("true"), queue_anyway=True)
        await fleet.client.jobs.wait(job.id)
        await fleet.client.jobs.delete(job.id)
        with pytest.raises(UnknownNameError):
            await _watched(fleet.client.jobs.watch(job.id))


async def _rest(log: AsyncIterator[LogLine]) -> list[LogLine]:
    return [line async for line in log]


async def _watched(views: AsyncIterator[JobView]) -> list[JobView]:
    return [view async for view in views]
