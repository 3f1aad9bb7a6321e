"""Tiers in lanes: what a run of all tests says, and that it ends when it is told to."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.lanes import INTERRUPTED, PORTIONS, Run, Work, works

TESTS = {
    "good": "def test_is_fine() -> None:\n    pass\n",
    "bad": "def test_is_not_fine() -> None:\n    raise AssertionError\n",
    "contract": "import os, pathlib\ndef test_is_starved() -> None:\n"
    "    tries = pathlib.Path('tries')\n    tries.write_text(f'{tries.read_text()}.' if tries.exists() else '.')\n"
    "    assert len(tries.read_text()) == int(os.environ['PASSES_AT'])\n"
    "def test_is_fine() -> None:\n    pass\n",
    "long": "import pathlib, signal\ndef test_ends_when_told_to() -> None:\n"
    "    pathlib.Path('begun').touch()\n    signal.pause()\n",
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for tier, text in TESTS.items():
        (tmp_path / "tests" / tier).mkdir(parents=True)
        (tmp_path / "tests" / tier / f"test_{tier}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # loading them takes longer than all else
    return Run(tmp_path, pytest=(sys.executable, "-m", "pytest"))


async def test_a_tier_that_fails_keeps_no_other_from_running(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert await run.all((("bad", "good"),)) == 1
    assert [(each.work.tier, each.passed, each.failed) for each in run.results] == [("bad", 0, 1), ("good", 1, 0)]
    assert "raise AssertionError" in capsys.readouterr().out


def test_a_tier_of_two_lanes_is_dealt_among_them_in_portions_that_take_each_file_once(run: Run) -> None:
    names = [f"tests/good/test_{number:02}.py" for number in range(2 * PORTIONS)]
    for name in names:
        (run.directory / name).touch()
    found = works((("good", "long"), ("good",)))
    assert found["long"] == [Work("long", "long", ("tests/long",))]
    assert [each.name for each in found["good"]] == [f"good-{number}" for number in range(1, PORTIONS + 1)]
    assert sorted(path for each in found["good"] for path in each.paths) == [*names, "tests/good/test_good.py"]
    assert {len(each.paths) for each in found["good"]} == {2, 3}


async def test_the_lane_that_is_free_takes_the_next_portion(run: Run) -> None:
    (run.directory / "tests" / "good" / "test_more.py").write_text(TESTS["good"])
    assert await run.all((("good",), ("bad", "good"))) == 1
    assert sorted((each.work.name, each.passed) for each in run.results) == [("bad", 0), ("good-1", 1), ("good-2", 1)]


async def test_a_test_of_real_programs_that_failed_beside_others_runs_again_alone(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSES_AT", "2")
    assert await run.all((("contract",), ("good",))) == 0
    [tier] = [each for each in run.results if each.work.tier == "contract"]
    assert (tier.passed, tier.failed) == (2, 0)
    assert tier.alone == ("tests.contract.test_contract::test_is_starved",)


async def test_a_test_of_real_programs_that_fails_alone_as_well_has_failed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSES_AT", "3")
    assert await run.all((("contract",),)) == 1
    assert [(each.passed, each.failed, each.alone) for each in run.results] == [(1, 1, ())]


async def test_an_interruption_is_passed_on_and_ends_the_run(run: Run) -> None:
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run.all((("long", "good"),)), name="run")
        while not (run.directory / "begun").exists():  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        assert await running == INTERRUPTED
    assert [each.work.tier for each in run.results] == ["long"]
