"""The coordinator's program and the key of its secrets: lost, replaced, rotated."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.secrets.secrets import Secrets
from muster.domain.fleet.access import AuditEntry
from muster.domain.fleet.secret import Secret, SecretKind
from muster.domain.jobs.job import DEFAULT_PROJECT, Role
from muster.domain.jobs.secret_use import SecretUse
from tests.integration.programs import ROOT

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ENTRY = AuditEntry(at=NOW, who="ada", what="secrets.set", target="", origin="", result="ok")
WANDB = Role(command=("x",), secrets=(SecretUse(secret="wandb", directory="/x"),))


def start(state: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """A start that ends as soon as everything is there."""
    command = [sys.executable, "-m", "coordinator", "--state", str(state), "--init", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def key_file(state: Path) -> Path:
    return state / "trust" / "secrets.key"


async def put(state: Path) -> None:
    store = SqlTrust.open(state / "coordinator.db")
    secret = Secret(
        project="default",
        name="wandb",
        kind=SecretKind.GENERIC,
        keys=("key",),
        created_at=NOW,
        updated_at=NOW,
        updated_by="ada",
    )
    await Secrets.open(store, key_file(state), (DEFAULT_PROJECT,)).put(
        secret, {"key": b"swordfish"}, ENTRY, again=False
    )
    store.close()


async def given(state: Path) -> list[bytes]:
    """What of the secret is left."""
    store = SqlTrust.open(state / "coordinator.db")
    secrets = Secrets.open(store, key_file(state), (DEFAULT_PROJECT,))
    role = WANDB if "wandb" in secrets.of_project("default") else Role(command=("x",))
    found = [value for each in await secrets.delivered("default", role) for value in each.values.values()]
    store.close()
    return found


async def test_a_coordinator_whose_key_is_gone_says_so_and_ends(tmp_path: Path) -> None:
    await put(tmp_path)
    backup = key_file(tmp_path).rename(tmp_path / "backup")
    refused = start(tmp_path)
    assert refused.returncode == 1
    assert f"{key_file(tmp_path)} is gone, and with it the key of the secrets" in refused.stderr
    assert "Traceback" not in refused.stderr
    backup.rename(key_file(tmp_path))
    assert await given(tmp_path) == [b"swordfish"]


async def test_secrets_nobody_can_open_are_forgotten_when_it_is_said(tmp_path: Path) -> None:
    await put(tmp_path)
    key_file(tmp_path).unlink()
    started = start(tmp_path, "--secrets-key", "replace")
    assert started.returncode == 0
    assert "secret forgotten, its key is lost" in started.stderr
    assert await given(tmp_path) == []


async def test_a_rotated_key_is_another_one_and_opens_what_is_there(tmp_path: Path) -> None:
    await put(tmp_path)
    before = key_file(tmp_path).read_text()
    assert start(tmp_path, "--secrets-key", "rotate").returncode == 0
    after = key_file(tmp_path).read_text()
    assert len(after.split()) == 1
    assert after != before
    assert await given(tmp_path) == [b"swordfish"]
