"""The main job: placed all at once, checked in, given the roster, and only then started."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.view import JobView
from tests.integration.fleet import executions, python, running_fleet, states_of
from tests.integration.jobs import CHECK_IN, command, shell
from tests.integration.obstacles import RuntimeWithObstacles

ROOT = Path(__file__).parents[2]
SHOW = python(
    """
import json, os, pathlib, stat
config = pathlib.Path(os.environ["MUSTER_CONFIG_DIR"])
roster = (config / "distributed.json").read_text()
modes = {file.name: oct(stat.S_IMODE(file.stat().st_mode)) for file in config.iterdir()}
print(json.dumps({"env": dict(os.environ), "roster": roster, "modes": modes}))
"""
)
FILES = {"distributed.json", "distributed.yaml", "hostfile", "hosts", "muster_worker.py"}


def entered(job: JobView, state: State) -> list[datetime]:
    """When each execution entered a state."""
    return [each.at for execution in executions(job) for each in execution.transitions if each.state is state]


async def test_every_worker_sees_the_same_roster_and_its_own_place_in_it(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b", "c") as fleet:
        job = await fleet.run(command(*SHOW, workers=3, max_per_node=1, ports={"data": None}, env={"COLOUR": "red"}))
        assert job.phase is JobPhase.SUCCEEDED
        shown = {line.rank: json.loads(line.text) for line in await fleet.output(job.id)}

    assert sorted(shown) == [0, 1, 2]
    rosters = [json.loads(shown[rank]["roster"]) for rank in range(3)]
    assert rosters[0]["members"] == rosters[1]["members"] == rosters[2]["members"]
    assert rosters[0]["master"] == rosters[1]["master"] == rosters[2]["master"]
    assert [member["rank"] for member in rosters[0]["members"]] == [0, 1, 2]
    assert {member["node"] for member in rosters[0]["members"]} == {"a", "b", "c"}
    for rank, roster in enumerate(rosters):
        assert set(shown[rank]["modes"].items()) == {(name, "0o644") for name in FILES}
        assert roster["self"] == roster["members"][rank]
        assert roster["config"]["member_id"] == str(rank)
        view = executions(job)[rank]
        assert (roster["self"]["address"], roster["self"]["node"]) == (view.address, view.node)
        assert roster["self"]["ports"] == {lease.name: lease.host_port for lease in view.ports}


async def test_user_code_finds_its_peers_where_muster_is_not_installed(tmp_path: Path) -> None:
    program = "import muster_worker; me = muster_worker.load(); print(me.rank, [peer.rank for peer in me.peers])"
    lean = f"PYTHONPATH=$MUSTER_CONFIG_DIR {sys.executable} -S -P -c '{program}'"
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(shell(lean, workers=2, max_per_node=1))
        assert job.phase is JobPhase.SUCCEEDED
        shown = {line.rank: line.text for line in await fleet.output(job.id)}

    assert shown == {0: b"0 [1]", 1: b"1 [0]"}


async def test_the_environment_tells_rank_and_size_and_where_the_master_is(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(command(*SHOW, workers=2, max_per_node=1, ports={"data": None}, env={"COLOUR": "red"}))
        shown = {line.rank: json.loads(line.text)["env"] for line in await fleet.output(job.id)}

    master = executions(job)[0]
    for rank in range(2):
        own = executions(job)[rank]
        data = next(lease.host_port for lease in own.ports if lease.name == "data")
        expected = {
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": master.address,
            "MASTER_PORT": str(next(lease.host_port for lease in master.ports if lease.name == "master")),
            "MUSTER_JOB_ID": job.id,
            "MUSTER_JOB_NAME": "job",
            "MUSTER_ATTEMPT": "1",
            "MUSTER_NODE": own.node,
            "MUSTER_PORT_DATA": str(data),
            "COLOUR": "red",
            "CUDA_VISIBLE_DEVICES": "",
        }
        assert expected.items() <= shown[rank].items()


async def test_a_worker_finds_its_peers_with_the_sdk(tmp_path: Path) -> None:
    code = "from muster import worker; me = worker.load(); print(me.rank, me.world_size, *(m.node for m in me.members))"
    spec = command(sys.executable, "-c", code, workers=2, max_per_node=1, env={"PYTHONPATH": str(ROOT)})
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(spec)
        nodes = " ".join(each.node or "" for each in executions(job))
        assert sorted(await fleet.texts(job.id)) == [f"0 0 2 {nodes}", f"1 1 2 {nodes}"]


async def test_no_worker_runs_before_the_last_one_has_checked_in(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    async with running_fleet(tmp_path, "a", "b") as fleet:
        late = RuntimeWithObstacles()
        late.gates["prepare"].close()
        await fleet.start_agent("c", runtime=late)
        await fleet.connected("c")
        submitted = await fleet.client.jobs.submit(
            shell(f"touch {marks}/$RANK; date +%s.%N", 3, max_per_node=1, check_in=CHECK_IN)
        )
        job = await fleet.until(
            submitted.id,
            lambda view: states_of(view).count(State.CHECKED_IN) == 2 and any(each.detail for each in executions(view)),
        )
        (missing,) = [each for each in executions(job) if each.state is not State.CHECKED_IN]
        assert (missing.node, missing.state) == ("c", State.PREPARING)
        assert list(marks.iterdir()) == []

        why = await fleet.client.jobs.why(job.id)
        (awaited,) = why.awaited
        assert (awaited.rank, awaited.node, awaited.detail) == (missing.rank, "c", "standing before a gate")
        assert why.summary.startswith("2 of 3 checked in, 0 armed; waits for 1 more, for at most ")

        late.gates["prepare"].open()
        job = await fleet.client.jobs.wait(job.id)
        assert job.phase is JobPhase.SUCCEEDED
        assert sorted(mark.name for mark in marks.iterdir()) == ["0", "1", "2"]
        began = [datetime.fromtimestamp(float(line.text), UTC) for line in await fleet.output(job.id)]

    released = job.attempts[0].released_at
    assert released is not None
    assert len(began) == 3
    assert max(entered(job, State.CHECKED_IN)) <= released <= min(began)
    assert max(entered(job, State.ARMED)) <= released


async def test_no_worker_runs_while_another_one_is_still_being_armed(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        late = RuntimeWithObstacles()
        late.gates["arm"].close()
        await fleet.start_agent("b", runtime=late)
        await fleet.connected("b")
        submitted = await fleet.client.jobs.submit(shell("true", 2, max_per_node=1))
        job = await fleet.until(submitted.id, lambda view: State.ARMED in states_of(view))
        assert sorted(states_of(job)) == [State.ARMED, State.CHECKED_IN]
        assert "1 armed; waits for 1 more" in (await fleet.client.jobs.why(job.id)).summary

        late.gates["arm"].open()
        job = await fleet.client.jobs.wait(job.id)
        assert max(entered(job, State.ARMED)) <= min(entered(job, State.RUNNING))


async def test_a_job_waits_for_a_node_that_joins_later(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("true", 2, max_per_node=1), queue_anyway=True)
        assert job.phase is JobPhase.QUEUED
        assert [refusal.node for refusal in (await fleet.client.jobs.why(job.id)).refusals] == ["a"]
        await fleet.start_agent("b")
        assert {each.node for each in executions(await fleet.client.jobs.wait(job.id))} == {"a", "b"}


async def test_workers_of_one_node_share_it(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(command(*SHOW, workers=3, gpus=2))
        shown = {line.rank: json.loads(line.text)["env"] for line in await fleet.output(job.id)}

    assert [shown[rank]["MUSTER_LOCAL_RANK"] for rank in range(3)] == ["0", "1", "2"]
    seen = [uuid for rank in range(3) for uuid in shown[rank]["CUDA_VISIBLE_DEVICES"].split(",")]
    assert seen == [uuid for execution in executions(job) for uuid in execution.gpus]
    assert len(set(seen)) == 6
