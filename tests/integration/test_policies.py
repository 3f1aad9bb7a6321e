"""Policies from one end to the other: set with the command line, and kept at the coordinator's door."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from muster.cli.exit_codes import ExitCode
from muster.cli.program import program
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.access import Access
from muster.domain.fleet.policies.policy import PolicyRule
from tests.builders import spec
from tests.integration.secured import secured


async def test_a_policy_is_set_shown_kept_and_taken_back(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        token = await fleet.user("ada", {"vision": Access.MEMBER})
        async with fleet.client(token) as ada:
            await admin.projects.set_policy("*", {"workers": PolicyRule(max="2")})
            made = await admin.projects.set_policy("vision", {"priority": PolicyRule(max="5")})
            assert made.rules == {"priority": PolicyRule(max="5")}
            assert [each.project for each in await ada.projects.policies("vision")] == ["*", "vision"]
            with pytest.raises(InvalidJobError, match="rule max of the policy of the fleet"):
                await ada.jobs.submit(spec(3, project="vision"), queue_anyway=True)
            with pytest.raises(InvalidJobError, match="rule max of the policy of project vision"):
                await ada.jobs.submit(spec(1, project="vision", priority=6), queue_anyway=True, dry_run=True)

            assert not (await admin.projects.set_policy("vision", {})).rules
            await ada.jobs.submit(spec(1, project="vision", priority=6), queue_anyway=True, dry_run=True)


def test_a_file_that_is_no_policy_is_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("rules:\n  workers: {maximum: 16}\n")
    words = ["projects", "policy", "vision", "--file", str(tmp_path / "policy.yaml")]

    done = CliRunner().invoke(program(words), words)

    assert done.exit_code == ExitCode.USAGE, done.output
    assert '"maximum" under "workers" is no rule' in done.output
