"""The contract of every runtime (`agent/runtimes/runtime.py`)."""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from muster.domain.gangs.log import Stream
from muster.domain.gangs.plan import Launch
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.job import InlineFile, Role
from tests.contract.runtime_places import PLACES, place_of
from tests.contract.runtimes import (
    GRACE,
    MARK,
    Place,
    Trial,
    assignment_for,
    directory_for,
    ignored,
    running,
    shell,
    trial,
)

AT_ONCE = timedelta(seconds=0.3)
"""Grace for programs that do not take it anyway."""


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request, tmp_path)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Where other users get to as well; pytest's own is closed to them."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


def script(text: str) -> Role:
    return Role(command=shell(text))


async def test_nothing_runs_before_start(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("echo ran")) as it:
        await it.arm()
        assert running(it.sandbox.execution) == []
        assert it.spool.size == 0
        await it.sandbox.start()
        assert await it.end() == Exit(code=0)
        assert it.printed() == [b"ran"]


async def test_starting_twice_starts_once(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("echo ran")) as it:
        await it.release()
        await it.sandbox.start()
        await it.end()
        assert it.printed() == [b"ran"]


async def test_arming_again_replaces_what_was_armed(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script('echo "$ROUND"')) as it:
        for number in ("1", "2"):
            it.launch = _with_env(it, ROUND=number)
            await it.arm()
        await it.sandbox.start()
        await it.end()
        assert it.printed() == [b"2"]


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
async def test_the_exit_code_is_exact(place: Place, tmp_path: Path, code: int) -> None:
    async with trial(place, tmp_path, script(f"exit {code}")) as it:
        assert await it.run() == Exit(code=code)


async def test_everybody_who_waits_for_the_exit_gets_the_same(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("exit 5")) as it:
        await it.release()
        first, second = await asyncio.gather(it.sandbox.exited(), it.sandbox.exited())
        assert [first, second, await it.sandbox.exited()] == [Exit(code=5)] * 3


async def test_giving_up_waiting_for_the_exit_does_not_disturb_others(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("trap 'exit 6' TERM; echo ready; while :; do sleep 0.05; done")) as it:
        await it.release()
        async with asyncio.TaskGroup() as tasks:
            impatient = tasks.create_task(it.sandbox.exited(), name="impatient")
            patient = tasks.create_task(it.sandbox.exited(), name="patient")
            await it.says(b"ready")
            impatient.cancel()
            await it.sandbox.stop(GRACE)
        assert impatient.cancelled()
        assert patient.result() == Exit(code=6)


async def test_both_streams_are_complete_and_in_order(place: Place, tmp_path: Path) -> None:
    loop = "i=0; while [ $i -lt 3000 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done"
    async with trial(place, tmp_path, script(loop)) as it:
        await it.run()
        assert it.printed(Stream.STDOUT) == [b"out %d" % number for number in range(3000)]
        assert it.printed(Stream.STDERR) == [b"err %d" % number for number in range(3000)]


async def test_a_very_long_line_stays_one_line(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("head -c 50000 /dev/zero | tr '\\000' x; echo; echo next")) as it:
        await it.run()
        assert it.printed() == [b"x" * 50_000, b"next"]


async def test_bytes_that_are_no_text_come_through(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("printf '\\000\\377 a\\rb \\001\\n'")) as it:
        await it.run()
        assert it.printed() == [b"\0\xff a\rb \1"]


async def test_a_last_line_without_line_end_is_kept(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("echo whole; printf torn")) as it:
        await it.run()
        assert it.printed() == [b"whole", b"torn"]


async def test_the_environment_is_what_was_ordered(place: Place, tmp_path: Path) -> None:
    role = Role(command=("env",), env={"RANK": "3", "EMPTY": "", "SPACED": "a  b='c' $d"})
    async with trial(place, tmp_path, role) as it:
        await it.run()
        found = dict(line.decode().split("=", 1) for line in it.printed())
        assert {name: found[name] for name in found.keys() - place.added_env} == {
            "RANK": "3",
            "EMPTY": "",
            "SPACED": "a  b='c' $d",
            MARK: it.sandbox.execution,
        }


async def test_an_ordered_path_wins_over_the_default(place: Place, tmp_path: Path) -> None:
    role = Role(command=("/bin/sh", "-c", 'echo "$PATH"'), env={"PATH": "/nowhere:/bin"})
    async with trial(place, tmp_path, role) as it:
        await it.run()
        assert it.printed() == [b"/nowhere:/bin"]


async def test_entrypoint_and_command_are_joined(place: Place, tmp_path: Path) -> None:
    role = Role(entrypoint=("sh", "-c", 'echo "$0|$1|$2"'), command=("a b", "", "c"))
    async with trial(place, tmp_path, role) as it:
        await it.run()
        assert it.printed() == [b"a b||c"]


async def test_user_code_starts_in_its_working_directory(place: Place, tmp_path: Path) -> None:
    directory = tmp_path / "where code lives"
    directory.mkdir()
    async with trial(place, tmp_path, Role(command=shell("pwd"), workdir=str(directory))) as it:
        await it.run()
        assert it.printed() == [str(directory).encode()]


async def test_inline_files_are_in_the_working_directory(place: Place, tmp_path: Path) -> None:
    files = (
        InlineFile(path="greet.sh", content=b"#!/bin/sh\necho hello $1\n", executable=True),
        InlineFile(path="deep/er/data.bin", content=b"\0\1binary\n"),
    )
    text = './greet.sh you; cat deep/er/data.bin; [ -x deep/er/data.bin ] || echo "not executable"'
    async with trial(place, tmp_path, Role(command=shell(text), files=files)) as it:
        await it.run()
        assert it.printed() == [b"hello you", b"\0\1binary", b"not executable"]


async def test_an_inline_file_can_be_the_command(place: Place, tmp_path: Path) -> None:
    files = (InlineFile(path="job.sh", content=b"#!/bin/sh\necho started\n", executable=True),)
    async with trial(place, tmp_path, Role(command=("./job.sh",), files=files)) as it:
        await it.run()
        assert it.printed() == [b"started"]


async def test_config_files_are_there_and_readable_for_all(place: Place, tmp_path: Path) -> None:
    text = 'cd "$WHERE"; for f in *; do stat -c "%n %a" $f; cat $f; done'
    contents = {"distributed.json": b'{"a": 1}\n', "hostfile": b"10.0.0.1 slots=1\n"}
    async with trial(place, tmp_path, script(text), contents) as it:
        it.launch = _with_env(it, WHERE=place.config_directory(it.directory))
        await it.run()
        assert it.printed() == [b"distributed.json 644", b'{"a": 1}', b"hostfile 644", b"10.0.0.1 slots=1"]


async def test_what_runs_is_the_role_with_its_values(place: Place, tmp_path: Path) -> None:
    role = script("echo {{muster:rank}}")
    async with trial(place, tmp_path, role) as it:
        file = InlineFile(path="/tmp/filled" if place.image else "filled", content=b"2\n")
        filled = replace(role, image=place.image, command=("sh", "-c", f"echo 1; cat {file.path}"), files=(file,))
        it.launch = replace(it.launch, role=filled)
        await it.run()
        assert it.printed() == [b"1", b"2"]


async def test_programs_of_a_dialect_are_found_before_all_others(place: Place, tmp_path: Path) -> None:
    mine = b'#!/bin/sh\necho "mine $1"; PATH=${PATH#*:}; command -v env >/dev/null && echo "and others"\n'
    async with trial(place, tmp_path, Role(command=("env", "x"))) as it:
        it.launch = replace(it.launch, programs={"env": mine})
        assert await it.run() == Exit(code=0)
        assert it.printed() == [b"mine x", b"and others"]
        assert (it.directory.programs / "env").stat().st_mode & 0o777 == 0o755


async def test_what_leaves_nothing_running_is_vacant_once_it_has_ended(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done")) as it:
        await it.release()
        await it.says(b"ready")
        assert not it.sandbox.vacant
        await it.sandbox.stop(GRACE)
        assert await it.end() == Exit(code=7)
        assert it.sandbox.vacant
        await it.sandbox.vacate()
        assert await it.sandbox.exited() == Exit(code=7)


async def test_it_tells_the_cpu_that_user_code_and_its_children_have_used(place: Place, tmp_path: Path) -> None:
    busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    async with trial(place, tmp_path, script(f"echo rests; ({busy}); echo done; sleep 60")) as it:
        await it.release()
        await it.says(b"rests")
        before = await it.sandbox.cpu_seconds()
        await it.says(b"done")
        after = await it.sandbox.cpu_seconds()
        assert before is not None
        assert after is not None
        assert after > before
        await it.sandbox.stop(AT_ONCE)


async def test_it_knows_its_own_processes_from_those_of_others(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("(sleep 60; true) & echo ready; wait")) as it:
        await it.release()
        await it.says(b"ready")
        its = set(running(it.sandbox.execution))
        found = await it.sandbox.own({*its, os.getpid(), 1 << 30})
        assert found
        assert found <= its
        assert await it.sandbox.own([os.getpid()]) == frozenset()
        await it.sandbox.stop(AT_ONCE)


async def test_vacating_ends_what_user_code_left_running(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("sleep 1000 >/dev/null 2>&1 & echo done")) as it:
        await it.release()
        await it.sandbox.exited()
        await it.sandbox.vacate()
        assert running(it.sandbox.execution) == []
        assert await it.end() == Exit(code=0)
        assert it.printed() == [b"done"]


async def test_stopping_lets_a_program_end_in_its_own_way(place: Place, tmp_path: Path) -> None:
    text = "trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    async with trial(place, tmp_path, script(text)) as it:
        await it.release()
        await it.says(b"ready")
        await it.sandbox.stop(GRACE)
        assert running(it.sandbox.execution) == []
        assert await it.end() == Exit(code=7)
        assert it.printed() == [b"ready", b"saved"]


async def test_a_program_that_ignores_the_order_is_killed_after_the_grace(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("trap '' TERM; echo ready; while :; do sleep 0.05; done")) as it:
        await it.release()
        await it.says(b"ready")
        await it.sandbox.stop(AT_ONCE)
        assert running(it.sandbox.execution) == []
        assert await it.end() == Exit(code=137)


async def test_stopping_ends_children_that_ignore_it_too(place: Place, tmp_path: Path) -> None:
    child = "(trap '' TERM; echo ready; while :; do sleep 0.05; done) & wait"
    async with trial(place, tmp_path, script(child)) as it:
        await it.release()
        await it.says(b"ready")
        assert len(running(it.sandbox.execution)) >= 2
        await it.sandbox.stop(AT_ONCE)
        assert running(it.sandbox.execution) == []


async def test_stopping_what_was_never_started_does_nothing(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("echo ran")) as it:
        await it.sandbox.stop(GRACE)
        await it.arm()
        await it.sandbox.stop(GRACE)
        assert await it.run() == Exit(code=0)


async def test_stopping_what_has_ended_changes_nothing(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("exit 4")) as it:
        await it.run()
        await it.sandbox.stop(GRACE)
        assert await it.sandbox.exited() == Exit(code=4)


@pytest.mark.parametrize("program", ["no-such-program", "./no/such/file", "/no/such/file"])
async def test_a_missing_program_is_missed_when_arming(place: Place, tmp_path: Path, program: str) -> None:
    async with trial(place, tmp_path, Role(command=(program, "--flag"))) as it:
        with pytest.raises(ExecutionError, match=program) as caught:
            await it.arm()
        assert caught.value.kind is FailureKind.COMMAND_NOT_FOUND


async def test_a_program_that_is_not_executable_is_missed_when_arming(place: Place, tmp_path: Path) -> None:
    files = (InlineFile(path="train.sh", content=b"#!/bin/sh\necho hello\n"),)
    async with trial(place, tmp_path, Role(command=("./train.sh",), files=files)) as it:
        with pytest.raises(ExecutionError, match=r"train\.sh.*not executable") as caught:
            await it.arm()
        assert caught.value.kind is FailureKind.COMMAND_NOT_FOUND


@pytest.mark.parametrize("stage", ["prepared", "armed", "started", "ended", "stopped"])
async def test_removing_leaves_nothing_in_whatever_stage(place: Place, tmp_path: Path, stage: str) -> None:
    async with trial(place, tmp_path, script("trap '' TERM; echo ready; [ -z $ON ] || sleep 1000 & wait")) as it:
        if stage != "ended":
            it.launch = _with_env(it, ON="1")
        if stage != "prepared":
            await it.arm()
        if stage in {"started", "ended", "stopped"}:
            await it.sandbox.start()
            await it.says(b"ready")
        if stage == "ended":
            await it.end()
        if stage == "stopped":
            await it.sandbox.stop(AT_ONCE)
        await it.sandbox.remove()
        assert running(it.sandbox.execution) == []
        assert await place.left(it.sandbox.execution) == []
        await it.sandbox.remove()


async def test_a_cancelled_prepare_leaves_nothing(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script("true")) as it, place.runtime() as runtime, asyncio.TaskGroup() as tasks:
        role = Role(command=shell("sleep 1000"), image=place.image)
        assignment = assignment_for(role)
        directory = directory_for(tmp_path, assignment.execution)
        going = runtime.prepare(assignment, directory, it.spool, (), ignored)
        preparing = tasks.create_task(going, name="prepare")
        await asyncio.sleep(0)
        preparing.cancel()
        await asyncio.wait([preparing])
        if not preparing.cancelled():
            await preparing.result().remove()
        assert running(assignment.execution) == []
        assert await place.left(assignment.execution) == []


async def test_the_offer_names_the_runtime_and_no_problem(place: Place) -> None:
    async with place.runtime() as runtime:
        offer = await runtime.offer()
        assert offer.kind is runtime.kind
        assert offer.version
        assert offer.problem is None


def _with_env(it: Trial, **variables: str) -> Launch:
    return replace(it.launch, env={**it.launch.env, **variables})
