"""Pools on real programs, from the command line to the nodes."""

import json
from pathlib import Path

from muster.domain.fleet.pool import Pool
from muster.domain.jobs.placing.pool_choice import PoolChoice
from tests.integration.fleet import executions, running_fleet
from tests.integration.jobs import shell
from tests.integration.secured import secured
from tests.integration.secured_program import muster


async def test_jobs_go_to_the_nodes_of_their_pool_and_pools_outlive_the_coordinator(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        assert await fleet.client.pools.put(Pool(name="fast", selector={"name": "b"})) == ()
        await fleet.restart_coordinator()
        ended = [await fleet.run(shell("true", pools=(PoolChoice(pool=pool),))) for pool in ("default", "fast")]
        views = {view.pool.name: view.nodes for view in await fleet.client.pools.list()}
        assert await fleet.client.pools.remove("fast") == ()
        told = [event.sentence async for event in fleet.client.fleet.events()]

    assert [executions(job)[0].node for job in ended] == ["a", "b"]
    assert views == {"default": ("a",), "fast": ("b",)}
    assert {"pool was set: fast", "pool was removed: fast"} <= set(told)


async def test_a_pool_is_set_shown_and_removed_from_the_command_line(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        refused = await muster(fleet, "pools", "set", "fast", "--label", "gpu=h100")
        made = await muster(fleet, "pools", "set", "fast", "--label", "gpu=h100", "--anyway")
        limited = await muster(fleet, "pools", "set", "fast", "--longest-run", "3d", "-o", "json")
        listed = await muster(fleet, "pools")
        shown = json.loads((await muster(fleet, "pools", "show", "fast", "-o", "json"))[1])
        plain = await muster(fleet, "pools", "set", "fast", "--label", "none", "--longest-run", "none", "-o", "json")
        levels = ("--level", "row", "--level", "switch")
        close = await muster(fleet, "pools", "set", "fast", *levels, "-o", "json")
        usual = await muster(fleet, "pools", "set", "fast", "--level", "none", "-o", "json")
        taken = await muster(fleet, "pools", "set", "fast", "--level", "local/rack")
        unknown = await muster(fleet, "pools", "show", "fats")
        gone = await muster(fleet, "pools", "remove", "fast")

    assert "no node carries the labels of pool fast" in refused[2]
    assert made[1] == "pool fast is set\n"
    assert json.loads(limited[1])["pool"] == {
        "name": "fast",
        "selector": {"gpu": "h100"},
        "longest_run": 259200.0,
        "levels": [],
        "enforce": "tell",
    }
    assert listed[1].splitlines()[-1].split() == ["fast", "gpu=h100", "0", "0/0", "3d", "-"]
    assert (shown["pool"]["selector"], shown["is_set"]) == ({"gpu": "h100"}, True)
    assert json.loads(plain[1])["pool"] == {
        "name": "fast",
        "selector": {},
        "longest_run": None,
        "levels": [],
        "enforce": "tell",
    }
    assert json.loads(close[1])["pool"]["levels"] == ["row", "switch"]
    assert json.loads(usual[1])["pool"]["levels"] == []
    assert "nodes give the label local/rack to themselves" in taken[2]
    assert unknown[2].endswith('there is no pool "fats"; did you mean "fast"?\n')
    assert gone[1] == "pool fast is removed\n"
