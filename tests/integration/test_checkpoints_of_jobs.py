"""Checkpoints from user code to the attempt after it, with a real coordinator, real agents and a real depot."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from muster import load_job
from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.domain.data.checkpoint import CheckpointRanks, JobCheckpoint
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec, PullPolicy, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.restart import RestartPolicy
from tests.docker_daemon import IMAGE, docker_socket
from tests.integration.depots import depot, uploaded
from tests.integration.programs import ROOT, agent, coordinator

__all__ = ["docker_socket"]

EXAMPLE = ROOT / "examples" / "checkpoints" / "processes.yaml"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the node's user for jobs can get to, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="muster-checkpoints-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


@asynccontextmanager
async def fleet(place: Path, *options: str) -> AsyncIterator[Client]:
    """A coordinator, its depot and one agent with these options."""
    async with (
        coordinator(place) as login,
        client_of(login) as client,
        depot(place / "coordinator"),
        agent(place, login, *options),
    ):
        (place / "folder").mkdir()
        (place / "folder" / "file").touch()
        await uploaded(client, place / "folder")  # from then on the coordinator knows its depot
        yield client


def job(script: str, count: int = 1, **how: object) -> JobSpec:
    checkpoint = JobCheckpoint(**how)  # type: ignore[arg-type]  # whatever is asked for
    role = Role(count=count, command=("/bin/sh", "-c", script), checkpoint=checkpoint)
    return JobSpec(name="saves", roles=(role,), restarts=RestartPolicy(limit=3))


def undisturbed(spec: JobSpec) -> JobSpec:
    """The same without what kills it."""
    return replace(spec, roles=tuple(replace(role, env={}) for role in spec.roles))


async def weights_of(client: Client, job: JobId, into: Path) -> bytes:
    await client.outputs.get(job, into)
    return (into / "weights.json").read_bytes()


async def test_a_training_that_is_killed_ends_with_the_same_weights_as_one_that_is_not(place: Path) -> None:
    killed = load_job(EXAMPLE.read_text(), str(EXAMPLE), base=EXAMPLE.parent)
    async with fleet(place) as client:
        one = await client.jobs.submit(killed, queue_anyway=True)
        ended = await client.jobs.wait(one.id)
        events = [event.text async for event in client.jobs.events(one.id)]
        first = await weights_of(client, one.id, place / "killed")
        quiet = await client.jobs.submit(undisturbed(killed))
        again = await client.jobs.wait(quiet.id)
        second = await weights_of(client, again.id, place / "quiet")

    assert (ended.phase, len(ended.attempts)) == (JobPhase.SUCCEEDED, 2)
    assert "attempt 2 goes on from checkpoint epoch-3 of attempt 1" in events, "; ".join(events)
    assert (len(again.attempts), second) == (1, first)


async def test_each_rank_finds_its_own_part_and_what_the_first_one_alone_has(place: Path) -> None:
    script = """
        cd "$MUSTER_CHECKPOINT_DIR"
        if [ "$MUSTER_ATTEMPT" = 1 ]; then
            mkdir s.tmp; echo $MUSTER_RANK > s.tmp/rank; [ $MUSTER_RANK = 0 ] && echo all > s.tmp/shared
            touch .s.finished; mv s.tmp s
            sleep 3; exit $((MUSTER_RANK == 0))
        fi
        echo "$MUSTER_CHECKPOINT" | grep -q '/s$' && cat "$MUSTER_CHECKPOINT/rank" "$MUSTER_CHECKPOINT/shared" \
            > "$MUSTER_OUTPUTS_DIR/found"
    """
    async with fleet(place) as client:
        submitted = await client.jobs.submit(job(script, count=2), queue_anyway=True)
        ended = await client.jobs.wait(submitted.id)
        await client.outputs.get(ended.id, place / "results")

    assert (ended.phase, len(ended.attempts)) == (JobPhase.SUCCEEDED, 2)
    found = [(place / "results" / str(rank) / "found").read_text() for rank in range(2)]
    assert found == ["0\nall\n", "1\nall\n"]


async def test_what_is_half_written_when_user_code_is_killed_is_not_restored(place: Path) -> None:
    script = """
        cd "$MUSTER_CHECKPOINT_DIR"
        if [ "$MUSTER_ATTEMPT" = 1 ]; then
            mkdir a; echo whole > a/f; touch .a.finished; mkdir b; echo half > b/f; kill -9 $$
        fi
        ls > "$MUSTER_OUTPUTS_DIR/found"; cat "$MUSTER_CHECKPOINT/f" >> "$MUSTER_OUTPUTS_DIR/found"
    """
    async with fleet(place) as client:
        submitted = await client.jobs.submit(job(script, ranks=CheckpointRanks.RANK0), queue_anyway=True)
        ended = await client.jobs.wait(submitted.id)
        await client.outputs.get(ended.id, place / "results")

    assert (place / "results" / "found").read_text() == "a\nwhole\n"


async def test_a_checkpoint_with_a_link_is_not_stored_and_the_job_begins_anew(place: Path) -> None:
    script = """
        cd "$MUSTER_CHECKPOINT_DIR"
        if [ "$MUSTER_ATTEMPT" = 1 ]; then
            mkdir a; echo x > a/f; ln -s f a/latest; touch .a.finished; exit 1
        fi
        [ -z "$MUSTER_CHECKPOINT" ]
    """
    async with fleet(place) as client:
        submitted = await client.jobs.submit(job(script), queue_anyway=True)
        ended = await client.jobs.wait(submitted.id)

    assert (ended.phase, len(ended.attempts)) == (JobPhase.SUCCEEDED, 2)


async def test_a_container_of_some_user_finds_what_it_saved_may_change_it_and_people_get_it(
    place: Path, docker_socket: Path
) -> None:
    script = """
        cd "$MUSTER_CHECKPOINT_DIR"
        if [ "$MUSTER_ATTEMPT" = 1 ]; then
            umask 077; mkdir -p a.tmp/deep; echo one > a.tmp/deep/state; touch .a.finished; mv a.tmp a; exit 1
        fi
        cat a/deep/state && echo more >> a/deep/state && mkdir b && mv a/deep/state b/state && rm -r a
    """
    role = Role(
        image=IMAGE, command=("/bin/sh", "-ec", script), user="1234", pull=PullPolicy.NEVER, checkpoint=JobCheckpoint()
    )
    spec = JobSpec(name="saves", roles=(role,), restarts=RestartPolicy(limit=1))
    async with fleet(place, "--docker-socket", str(docker_socket)) as client:
        submitted = await client.jobs.submit(spec, queue_anyway=True)
        ended = await client.jobs.wait(submitted.id)
        assert (ended.phase, len(ended.attempts)) == (JobPhase.SUCCEEDED, 2), ended.summary
        for name in ("a", "b"):
            await client.checkpoints.get(ended.id, place / "results", name=name)

    found = [(place / "results" / path).read_text() for path in ("a/deep/state", "b/state")]
    assert found == ["one\n", "one\nmore\n"]
