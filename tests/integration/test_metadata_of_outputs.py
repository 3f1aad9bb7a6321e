"""What user code says of its files, with a real coordinator, a real agent and a real depot."""

import json
from pathlib import Path

from muster.cli.exit_codes import ExitCode
from muster.cli.local.fleet import client_of
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.depots import depot, uploaded
from tests.integration.output_fleets import folder_in, muster, place
from tests.integration.programs import agent, coordinator

__all__ = ["place"]

SCRIPT = """
cd "$MUSTER_OUTPUTS_DIR"
echo weights > model.pt
echo '{"loss": 0.5, "stage": "old"}' > model.pt.metadata.json
echo '{"file": "model.pt", "metadata": {"stage": "new"}}' > valohai.metadata.jsonl
echo plot > plot.png
echo '[]' > plot.png.metadata.json
: > empty
: > empty.metadata.json
"""


async def test_metadata_is_shown_at_the_file_that_it_is_about(place: Path) -> None:
    spec = JobSpec(name="leaves", roles=(Role(command=("/bin/sh", "-c", SCRIPT)),))
    state = place / "coordinator"
    async with coordinator(place) as login, client_of(login) as client, depot(state), agent(place, login):
        await uploaded(client, folder_in(place / "folder"))
        submitted = await client.jobs.submit(spec, queue_anyway=True)
        assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED

        code, told, _ = await muster(login, place, "outputs", submitted.id, "-o", "json")
        assert code == ExitCode.SUCCESS
        assert {each["path"]: each["metadata"] or each["fault"] for each in json.loads(told)} == {
            "empty": "",
            "empty.metadata.json": "is no JSON object",
            "model.pt": {"loss": 0.5, "stage": "new"},
            "plot.png": "",
            "plot.png.metadata.json": "is no JSON object",
        }
        assert [each.path for each in await client.outputs.list(submitted.id, only=["model*", "*.jsonl"])] == [
            "model.pt",
            "model.pt.metadata.json",
            "valohai.metadata.jsonl",
        ]
