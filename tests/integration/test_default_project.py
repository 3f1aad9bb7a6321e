"""Which project a job and a secret belong to that name none."""

from dataclasses import replace
from pathlib import Path

import pytest

from muster.client.client import Client
from muster.domain.errors import UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, Access
from tests.integration.jobs import shell
from tests.integration.secured import secured


async def project_of(client: Client, named: str = "") -> str:
    job = await client.jobs.submit(replace(shell("true"), project=named), queue_anyway=True)
    return job.spec.project


async def test_it_is_the_only_one_in_which_the_caller_may_submit_else_the_default(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        ada = await fleet.user("ada", {"vision": Access.MEMBER, "speech": Access.VIEWER})
        bea = await fleet.user("bea", {"vision": Access.MEMBER, "speech": Access.MEMBER, "default": Access.MEMBER})
        cleo = await fleet.user("cleo", {EVERYWHERE: Access.MEMBER, "vision": Access.MEMBER})
        dan = await fleet.user("dan", {"vision": Access.OPERATOR})
        async with fleet.client(ada) as a, fleet.client(bea) as b, fleet.client(cleo) as c, fleet.client(dan) as d:
            assert [await project_of(a), await project_of(b), await project_of(c)] == ["vision", "default", "default"]
            assert await project_of(b, "speech") == "speech"
            with pytest.raises(UnknownNameError):
                await project_of(a, "default")
            await d.secrets.set("wandb", {"key": b"0123"})
            assert [secret.project for secret in await a.secrets.list()] == ["vision"]


async def test_many_jobs_at_once_are_settled_alike(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        ada = await fleet.user("ada", {"vision": Access.MEMBER})
        async with fleet.client(ada) as client:
            ids = await client.jobs.submit_many([shell("true"), shell("true")], queue_anyway=True)
            assert [(await client.jobs.get(job)).spec.project for job in ids] == ["vision", "vision"]


async def test_the_environment_names_one_for_what_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_PROJECT", "speech")
    async with secured(tmp_path) as fleet:
        ada = await fleet.user("ada", {"vision": Access.MEMBER, "speech": Access.MEMBER})
        async with fleet.client(ada) as client:
            assert [await project_of(client), await project_of(client, "vision")] == ["speech", "vision"]
