"""What jobs tell of themselves, from what a rank prints to whoever asks."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from muster.domain.errors import UnknownNameError
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.restart import RestartPolicy
from muster.domain.telemetry.point import RankPoints
from tests.integration.fleet import running_fleet
from tests.integration.jobs import shell

PRINTS = r"""for step in 1 2 3; do printf '{"step": %s, "loss": 0.%s}\n' $step $RANK; echo a line; done; """
ON_FILE = "until [ -e {file} ]; do sleep 0.05; done; "


def losses(found: RankPoints) -> list[tuple[float, float]]:
    return [(point.values["step"], point.values["loss"]) for point in found.points]


async def test_every_rank_has_its_points(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.client.jobs.submit(shell(PRINTS, 3))
        await _all(fleet.client.metrics.follow(job))  # until all of the logs have come
        found = await fleet.client.metrics.read(job.id)
        some = await fleet.client.metrics.read(job.id, ranks=[1], keys=["loss"], most=2)
        none = await fleet.client.metrics.read(job, keys=["accuracy"])
        with pytest.raises(UnknownNameError, match="there is no rank 7"):
            await fleet.client.metrics.read(job.id, ranks=[7])

    assert [(each.rank, losses(each)) for each in found] == [
        (rank, [(step, rank / 10) for step in (1, 2, 3)]) for rank in range(3)
    ]
    assert [losses(each) for each in some] == [[(1, 0.1), (3, 0.1)]]
    assert [(each.points, each.all) for each in none] == [((), 3)] * 3


async def test_a_follower_loses_and_repeats_nothing_while_the_coordinator_starts_anew(tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    script = PRINTS + ON_FILE.format(file=go_on) + PRINTS
    seen: list[tuple[float, float]] = []
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell(script))
        async with aclosing(fleet.client.metrics.follow(job, keys=["loss"])) as pieces:
            async for piece in pieces:
                seen += losses(piece)
                if len(seen) == 3 and not go_on.exists():
                    await fleet.stop_coordinator()
                    await fleet.start_coordinator()
                    go_on.touch()

    assert seen == [(1, 0.0), (2, 0.0), (3, 0.0)] * 2


async def test_a_follower_goes_on_with_the_next_attempt(tmp_path: Path) -> None:
    attempts: dict[int, list[float]] = {}
    async with running_fleet(tmp_path, "a") as fleet:
        script = r"""printf '{"step": %s}\n' $MUSTER_ATTEMPT; [ $MUSTER_ATTEMPT = 2 ]"""
        job = await fleet.client.jobs.submit(shell(script, restarts=RestartPolicy(limit=1)))
        async for piece in fleet.client.metrics.follow(job):
            attempts.setdefault(piece.attempt, []).extend(point.values["step"] for point in piece.points)
        first = await fleet.client.metrics.read(job, attempt=1)

    assert attempts == {1: [1], 2: [2]}
    assert [[point.values["step"] for point in rank.points] for rank in first] == [[1]]


async def test_what_does_not_print_has_no_points_and_keeps_nobody(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("exec sleep 60"))
        await fleet.until_states(job.id, State.RUNNING)
        running = await fleet.client.metrics.read(job.id)
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(_all(fleet.client.metrics.follow(job)))
            await fleet.client.jobs.stop(job.id)
            followed = await following

    assert [(each.rank, each.points, each.all) for each in running] == [(0, (), 0)]
    assert [each.points for each in followed] == [()] * len(followed)


async def _all(pieces: object) -> list[RankPoints]:
    return [piece async for piece in pieces]  # type: ignore[attr-defined]  # an asynchronous generator
