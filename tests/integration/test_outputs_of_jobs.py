"""Outputs from user code to whoever wants them, with a real coordinator, a real agent and a real depot."""

import asyncio
import signal
from contextlib import aclosing, suppress
from pathlib import Path

from muster.cli.exit_codes import ExitCode
from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.domain.data.outputs import OutputsStage
from muster.domain.errors import UnavailableError
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec, PullPolicy, Role
from muster.domain.jobs.lifecycle import JobPhase
from tests.docker_daemon import IMAGE, docker_socket
from tests.integration.depots import age_all, depot, uploaded
from tests.integration.output_fleets import LIMIT, WRITES, fleet, folder_in, muster, place
from tests.integration.programs import agent, coordinator
from tests.integration.relays import until

__all__ = ["docker_socket", "place"]


def job(script: str, count: int = 1) -> JobSpec:
    return JobSpec(name="leaves", roles=(Role(count=count, command=("/bin/sh", "-c", script)),))


async def test_what_user_code_leaves_is_stored_before_its_job_ends(place: Path) -> None:
    script = 'mkdir "$MUSTER_OUTPUTS_DIR/sub"; echo $MUSTER_RANK > "$MUSTER_OUTPUTS_DIR/sub/rank.txt"'
    async with fleet(place) as client:
        submitted = await client.jobs.submit(job(script, count=2), queue_anyway=True)
        ended = await client.jobs.wait(submitted.id)

        assert ended.phase is JobPhase.SUCCEEDED
        left = [each.outputs for each in (await client.jobs.get(ended.id)).attempts[-1].executions]
        assert [(each.stage, each.files, each.bytes) for each in left if each] == [(OutputsStage.STORED, 1, 2)] * 2


async def test_outputs_come_back_as_they_were_left(place: Path) -> None:
    script = 'cd "$MUSTER_OUTPUTS_DIR"; mkdir a; echo $MUSTER_RANK > a/rank.txt; echo same > same; ln -s / link; exit 3'
    async with fleet(place) as client:
        submitted = await client.jobs.submit(job(script), queue_anyway=True)
        assert (await client.jobs.wait(submitted.id)).phase is JobPhase.FAILED

        files = await client.outputs.list(submitted.id)
        came = await client.outputs.get(submitted.id, place / "results")
        again = await client.outputs.get(submitted.id, place / "results", only=["a/*"], ranks=[0])
        found = await client.outputs.of(submitted.id)

    assert [(each.place, each.size) for each in files] == [("a/rank.txt", 2), ("same", 5)]
    assert (place / "results" / "a" / "rank.txt").read_text() == "0\n"
    assert {path.name for path in (place / "results").iterdir()} == {"a", "same"}
    assert (came.files, came.fetched, came.bytes) == (2, 2, 7)
    assert (again.files, again.fetched) == (1, 0)
    assert [(each.outputs.left_out, each.outputs.why) for each in found.ranks] == [(1, "link: a link")]


async def until_looked_at(client: Client) -> None:
    """Wait until the depot has looked through all that it holds, with this project."""
    while True:
        with suppress(UnavailableError):
            if (await client.data.storage()).projects["default"].trees:
                return
        await asyncio.sleep(0.05)


async def stage_of(client: Client, job: JobId) -> tuple[OutputsStage, str]:
    """What has become of the outputs of rank 0."""
    [found] = (await client.outputs.of(job)).ranks
    return found.outputs.stage, found.outputs.why


async def until_storing(client: Client, job: JobId) -> None:
    async with aclosing(client.jobs.watch(job)) as views:
        await anext(view async for view in views if view.phase is JobPhase.STORING)


async def test_without_a_depot_they_stay_on_the_node_until_somebody_has_them_stored_again(place: Path) -> None:
    state = place / "coordinator"
    async with coordinator(place) as login, client_of(login) as client, asyncio.timeout(LIMIT):
        async with agent(place, login, ending=signal.SIGKILL):
            submitted = await client.jobs.submit(job(WRITES), queue_anyway=True)
            assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
            assert await stage_of(client, submitted.id) == (
                OutputsStage.ON_NODE,
                "the fleet has no depot (docs/depot.md)",
            )
            kept = place / "node" / "outputs" / f"{submitted.id}-1-0" / "results.txt"
            await until(kept.exists)
            assert kept.read_text() == "results\n"
        async with depot(state):
            await uploaded(client, folder_in(place / "folder"))
            assert (await client.outputs.retry(submitted.id)).ranks == (0,)
            assert (await stage_of(client, submitted.id))[0] is OutputsStage.STORING_AGAIN
            async with agent(place, login):
                await until(lambda: not kept.parent.exists())
                assert (await stage_of(client, submitted.id))[0] is OutputsStage.STORED
            await client.outputs.get(submitted.id, place / "results")
    assert (place / "results" / "results.txt").read_text() == "results\n"


async def test_a_depot_that_is_away_is_waited_for(place: Path) -> None:
    state = place / "coordinator"
    async with coordinator(place) as login, client_of(login) as client, asyncio.timeout(LIMIT), agent(place, login):
        async with depot(state) as program:
            await uploaded(client, folder_in(place / "folder"))
            program.kill()
            await program.wait()
        submitted = await client.jobs.submit(job(WRITES), queue_anyway=True)
        await until_storing(client, submitted.id)
        other = await client.jobs.submit(job("true"))
        assert (await client.jobs.wait(other.id)).phase is JobPhase.SUCCEEDED
        async with depot(state):
            assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
            await client.outputs.get(submitted.id, place / "results")
    assert (place / "results" / "results.txt").read_text() == "results\n"


async def test_the_agent_after_one_that_was_killed_goes_on(place: Path) -> None:
    state = place / "coordinator"
    async with coordinator(place) as login, client_of(login) as client, asyncio.timeout(LIMIT):
        async with depot(state):
            await uploaded(client, folder_in(place / "folder"))
        async with agent(place, login, ending=signal.SIGKILL):
            submitted = await client.jobs.submit(job(WRITES), queue_anyway=True)
            await until_storing(client, submitted.id)
        async with agent(place, login), depot(state):
            assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
            assert await stage_of(client, submitted.id) == (OutputsStage.STORED, "")
            await until(lambda: not list((place / "node" / "executions").iterdir()))
            assert not (place / "node" / "outputs").exists()


async def test_outputs_stay_as_long_as_their_job_and_count_for_its_project(place: Path) -> None:
    state = place / "coordinator"
    async with coordinator(place) as login, client_of(login) as client, asyncio.timeout(LIMIT), agent(place, login):
        async with depot(state):
            await uploaded(client, folder_in(place / "folder"))
            submitted = await client.jobs.submit(job(WRITES), queue_anyway=True)
            await client.jobs.wait(submitted.id)
        age_all(state)
        async with depot(state):
            await until_looked_at(client)
            held = (await client.data.storage()).projects["default"]
            assert (held.trees, held.objects) == (1, 2)
            assert (await client.outputs.get(submitted.id, place / "results")).fetched == 1
            await client.jobs.delete(submitted.id)
        objects = age_all(state)
        async with depot(state):
            await until(lambda: not list(objects.all()))


async def test_what_a_project_may_not_keep_stays_on_the_node(place: Path) -> None:
    async with fleet(place) as client:
        await client.projects.limit_storage("default", 3)
        submitted = await client.jobs.submit(job(WRITES), queue_anyway=True)
        assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
        stage, why = await stage_of(client, submitted.id)
        assert (stage, why) == (OutputsStage.ON_NODE, "they are more than the 3 B that its project may keep")


async def test_the_command_line_lists_and_fetches_them_and_says_what_is_not_there(place: Path) -> None:
    script = 'cd "$MUSTER_OUTPUTS_DIR"; mkdir a; echo $MUSTER_RANK > a/rank.txt; ln -s / link'
    state = place / "coordinator"
    async with coordinator(place) as login, client_of(login) as client, depot(state), agent(place, login):
        await uploaded(client, folder_in(place / "folder"))
        submitted = await client.jobs.submit(job(script, count=2), queue_anyway=True)
        await client.jobs.wait(submitted.id)
        bare = await client.jobs.submit(job("true"))
        await client.jobs.wait(bare.id)

        code, listed, notes = await muster(login, place, "outputs", submitted.id)
        assert code == ExitCode.SUCCESS
        assert [line.split()[:4] for line in listed.splitlines()] == [
            ["RANK", "PATH", "SIZE", "STORED"],
            ["0", "a/rank.txt", "2", "B"],
            ["1", "a/rank.txt", "2", "B"],
        ]
        assert "rank 1: entries that were left out: 1 (link: a link)" in notes
        code, listed, _ = await muster(login, place, "outputs", "list", submitted.id, "--rank", "1", "-o", "csv")
        head, row = listed.splitlines()
        assert (head, row.split(",")[:3]) == ("rank,path,size,stored_at,sha256", ["1", "a/rank.txt", "2"])
        code, said, _ = await muster(login, place, "outputs", "get", submitted.id, "a/*", "--rank", "1")
        assert said == f"1 file, 2 B: 1 fetched; they are in leaves-{submitted.id}\n"
        assert (place / f"leaves-{submitted.id}" / "1" / "a" / "rank.txt").read_text() == "1\n"
        for words, why in (
            ((submitted.id, "nothing"), f"job {submitted.id} has stored no file like nothing"),
            ((bare.id,), f"attempt 1 of job {bare.id} has no outputs that are stored"),
            ((submitted.id, "--attempt", "2"), f"job {submitted.id} has no attempt 2; its newest is 1"),
        ):
            code, _, said = await muster(login, place, "outputs", "get", *words)
            assert (code, why in said) == (ExitCode.UNKNOWN_NAME, True), said


async def test_containers_leave_files_of_any_user_of_theirs(place: Path, docker_socket: Path) -> None:
    script = "cd /muster/outputs; mkdir d; id -u > d/user; ln -s /etc/passwd link; chown -h 4711 d/user || true"
    role = Role(image=IMAGE, command=("/bin/sh", "-c", script), pull=PullPolicy.NEVER)
    options = ("--docker-socket", str(docker_socket))
    async with (
        coordinator(place) as login,
        client_of(login) as client,
        asyncio.timeout(LIMIT),
        depot(place / "coordinator"),
        agent(place, login, *options),
    ):
        await uploaded(client, folder_in(place / "folder"))
        submitted = await client.jobs.submit(JobSpec(name="leaves", roles=(role,)), queue_anyway=True)
        ended = await client.jobs.wait(submitted.id)
        assert ended.phase is JobPhase.SUCCEEDED, ended.summary
        assert await stage_of(client, submitted.id) == (OutputsStage.STORED, "link: a link")
        assert [each.path for each in await client.outputs.list(submitted.id)] == ["d/user"]


async def test_stop_now_ends_a_job_whose_outputs_are_on_their_way(place: Path) -> None:
    state = place / "coordinator"
    async with coordinator(place) as login, client_of(login) as client, asyncio.timeout(LIMIT), agent(place, login):
        async with depot(state):
            await uploaded(client, folder_in(place / "folder"))
        submitted = await client.jobs.submit(job(WRITES), queue_anyway=True)
        await until_storing(client, submitted.id)
        assert (await muster(login, place, "stop", submitted.id))[0] == ExitCode.SUCCESS
        assert (await client.jobs.get(submitted.id)).phase is JobPhase.STORING

        code, _, messages = await muster(login, place, "stop", submitted.id, "--now")
        assert code == ExitCode.SUCCESS, messages
        assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
        assert await stage_of(client, submitted.id) == (OutputsStage.ON_NODE, "its job was stopped with --now")
        kept = place / "node" / "outputs" / f"{submitted.id}-1-0" / "results.txt"
        await until(kept.exists)
        assert kept.read_text() == "results\n"


async def test_what_user_code_leaves_when_its_job_is_stopped_now_stays_on_the_node(place: Path) -> None:
    script = f"trap '{WRITES}; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    async with asyncio.timeout(LIMIT), fleet(place) as client:
        submitted = await client.jobs.submit(job(script), queue_anyway=True)
        async with aclosing(client.jobs.logs(submitted.id, follow=True)) as lines:
            assert (await anext(lines)).text == b"up"
        await client.jobs.stop(submitted.id, now=True)

        assert (await client.jobs.wait(submitted.id)).phase is JobPhase.STOPPED
        assert await stage_of(client, submitted.id) == (OutputsStage.ON_NODE, "its job was stopped with --now")
        kept = place / "node" / "outputs" / f"{submitted.id}-1-0" / "results.txt"
        await until(kept.exists)
