"""Outputs of one job as inputs of another, with a real coordinator, a real agent and a real depot."""

import json
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.domain.data.job_input import JobInput
from muster.domain.errors import InvalidJobError
from muster.domain.ids import JobId
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.restart import RestartPolicy
from tests.integration.depots import depot
from tests.integration.programs import agent, coordinator

LEAVES = (
    'cd "$MUSTER_OUTPUTS_DIR"; mkdir -p model; echo weights $MUSTER_RANK > model/w.pt; echo notes > notes.txt; '
    'printf "#!/bin/sh\\necho tool" > tool; chmod +x tool'
)
LISTS = 'cd "$MUSTER_INPUTS_DIR/base"; find . -type f | sort; cat "$MUSTER_CONFIG_DIR/inputs.json"'


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the node's user for jobs can get to, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="muster-sources-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


@asynccontextmanager
async def fleet(place: Path) -> AsyncIterator[Client]:
    """A coordinator, its depot and one agent."""
    state = place / "coordinator"
    async with coordinator(place) as login, client_of(login) as client, depot(state), agent(place, login):
        yield client


async def done(client: Client, script: str, name: str = "train", count: int = 1, *inputs: JobInput) -> JobId:
    """A job that has ended."""
    role = Role(count=count, command=("/bin/sh", "-c", script), inputs=inputs)
    spec = JobSpec(name=name, roles=(role,), restarts=RestartPolicy(limit=0, infrastructure=0))
    submitted = await client.jobs.submit(spec, queue_anyway=True)
    return (await client.jobs.wait(submitted.id)).id


async def lines(client: Client, job: JobId) -> list[str]:
    return [each.text.decode().rstrip("\n") async for each in client.jobs.logs(job)]


async def test_a_job_finds_what_another_one_has_left(place: Path) -> None:
    async with fleet(place) as client:
        train = await done(client, LEAVES)
        script = f'{LISTS}; "$MUSTER_INPUTS_DIR/base/tool"'
        check = await done(client, script, "check", 1, JobInput(name="base", source="train"))

        view = await client.jobs.get(check)
        printed = await lines(client, check)
        assert view.phase is JobPhase.SUCCEEDED
        assert view.spec.roles[0].inputs[0].source == f"job:{train}/worker-0"
        assert printed[:3] == ["./model/w.pt", "./notes.txt", "./tool"]
        assert "tool" in printed
        listed = json.loads("\n".join(printed[3 : printed.index("}") + 1]))
        first = listed["base"]["files"][0]
        assert (first["name"], first["size"]) == ("w.pt", 10)
        assert first["uri"] == f"job:{train}/worker-0/model/w.pt"


async def test_all_executions_lie_beside_each_other_with_what_they_say_and_only_what_is_wanted_comes(
    place: Path,
) -> None:
    async with fleet(place) as client:
        says = """echo '{"file": "model/w.pt", "metadata": {"of": '$MUSTER_RANK'}}' > valohai.metadata.jsonl"""
        train = await done(client, f"{LEAVES}; {says}", count=2)
        base = JobInput(name="base", source=f"job:{train}/*", only=("model/*",))
        script = 'cd "$MUSTER_INPUTS_DIR/base"; find . -type f | sort | xargs cat; cat "$MUSTER_CONFIG_DIR/inputs.json"'
        check = await done(client, script, "check", 1, base)

        printed = await lines(client, check)
        assert printed[:2] == ["weights 0", "weights 1"]
        files = json.loads("\n".join(printed[2:]))["base"]["files"]
        assert [(each["name"], each["metadata"]) for each in files] == [("w.pt", [{"of": 0}]), ("w.pt", [{"of": 1}])]


async def test_they_are_there_also_once_the_job_that_left_them_is_deleted(place: Path) -> None:
    async with fleet(place) as client:
        train = await done(client, LEAVES)
        base = JobInput(name="base", source=f"job:{train}")
        held = JobSpec(name="held", hold=True, roles=(Role(command=("/bin/sh", "-c", LISTS), inputs=(base,)),))
        submitted = await client.jobs.submit(held, queue_anyway=True)
        await client.jobs.delete(train)
        with pytest.raises(Exception, match="there is no job with the id"):
            await done(client, LISTS, "check", 1, base)
        await client.jobs.unhold(submitted.id)

        assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED


async def test_names_that_stand_for_nothing_are_the_jobs_fault(place: Path) -> None:
    async with fleet(place) as client:
        await done(client, LEAVES)
        check = await done(client, "true", "check", 1, JobInput(name="base", source="train", only=("ckpt/**",)))

        failure = (await client.jobs.get(check)).attempts[-1].failure
        assert failure is not None
        assert failure.kind is FailureKind.DATA_REFUSED
        assert "is ckpt/** (only); there are 3 files, such as model/w.pt" in failure.message


async def test_a_job_that_has_left_nothing_is_refused_at_the_submit(place: Path) -> None:
    async with fleet(place) as client:
        train = await done(client, "true")
        with pytest.raises(InvalidJobError, match=rf"inputs\.base: worker-0 of job {train} has left no outputs"):
            await done(client, "true", "check", 1, JobInput(name="base", source="train"))
