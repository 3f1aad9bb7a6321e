"""Secrets on disk: sealed in the database, opened with a key beside it, and what follows where that is lost."""

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.records import AuditWish, StoredSecret
from coordinator.trust.secrets.sealing_keys import add_key, load_or_make, load_or_make_any
from coordinator.trust.secrets.secrets import MAX_SECRETS, Secrets, forget_unreadable, rotate_key
from coordinator.trust.secrets.uses import spelled_out
from muster.domain.errors import ConflictError, ExhaustedError, MusterError
from muster.domain.fleet.access import AuditEntry
from muster.domain.fleet.secret import DeliveredSecret, Secret, SecretKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.secret_use import SecretUse

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
VALUE = b"swordfish-7f3a"
ENTRY = AuditEntry(at=NOW, who="ada", what="secrets.set", target="", origin="", result="ok")
PROJECTS = ("vision", "other")
WANDB = Role(command=("x",), secrets=(SecretUse(secret="wandb", directory="/muster/secrets/wandb"),))


def secret(name: str = "wandb", project: str = "vision") -> Secret:
    return Secret(
        project=project,
        name=name,
        kind=SecretKind.GENERIC,
        keys=("key",),
        created_at=NOW,
        updated_at=NOW,
        updated_by="ada",
    )


@contextmanager
def trust(directory: Path) -> Iterator[SqlTrust]:
    store = SqlTrust.open(directory / "coordinator.db")
    try:
        yield store
    finally:
        store.close()


def files_in(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def key_file(directory: Path) -> Path:
    return directory / "trust" / "secrets.key"


async def keep(store: SqlTrust, directory: Path, *names: str) -> Secrets:
    secrets = Secrets.open(store, key_file(directory), PROJECTS)
    for name in names:
        await secrets.put(secret(name), {"key": VALUE}, ENTRY, again=False)
    return secrets


async def test_a_secret_outlives_the_coordinator_and_is_given_as_it_was(tmp_path: Path) -> None:
    with trust(tmp_path) as store:
        await keep(store, tmp_path, "wandb")
    with trust(tmp_path) as store:
        again = Secrets.open(store, key_file(tmp_path), PROJECTS)
        assert dict(again.of_project("vision")) == {"wandb": secret()}
        assert await again.delivered("vision", WANDB) == (
            DeliveredSecret(name="wandb", kind=SecretKind.GENERIC, values={"key": VALUE}),
        )


async def test_no_value_lies_on_the_disk_and_the_key_is_for_its_owner_only(tmp_path: Path) -> None:
    with trust(tmp_path) as store:
        secrets = await keep(store, tmp_path, "wandb", "other")
        await secrets.put(secret("other"), {"key": VALUE + b"2"}, ENTRY, again=True)
        await secrets.remove("vision", "wandb", ENTRY)
        files = files_in(tmp_path)
        assert {"coordinator.db", "coordinator.db-wal"} <= {path.name for path in files}
        kept = b"".join(path.read_bytes() for path in files)
    assert b"vision" in kept
    assert VALUE not in kept
    assert VALUE.hex().encode() not in kept
    assert stat.S_IMODE(key_file(tmp_path).stat().st_mode) == 0o600
    assert key_file(tmp_path).read_text().strip().encode() not in (tmp_path / "coordinator.db").read_bytes()


async def test_a_change_and_its_audit_entry_are_kept_together_or_not_at_all(tmp_path: Path) -> None:
    with trust(tmp_path) as store:
        secrets = await keep(store, tmp_path, "wandb")
        [entry] = store.audit(AuditWish())
        assert replace(entry, number=0, previous="", hash="") == ENTRY
        _run(tmp_path, "DROP TABLE audit")
        with pytest.raises(MusterError):
            await secrets.put(secret("other"), {"key": VALUE}, ENTRY, again=False)
        with pytest.raises(MusterError):
            await secrets.remove("vision", "wandb", ENTRY)
        assert [each.secret.name for each in store.load_secrets()] == ["wandb"]
        assert list(secrets.of_project("vision")) == ["wandb"]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE secrets SET name = 'wandb' WHERE name = 'other'",
        "UPDATE secrets SET project = 'theirs' WHERE name = 'other'",
        "UPDATE secrets SET kind = 'registry', server = 'evil.example.org' WHERE name = 'other'",
        "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE name = 'third') WHERE name = 'other'",
    ],
)
async def test_a_row_that_was_moved_or_changed_is_not_opened(tmp_path: Path, change: str) -> None:
    with trust(tmp_path) as store:
        await keep(store, tmp_path, "other", "third")
    _run(tmp_path, change)
    with trust(tmp_path) as store:
        secrets = Secrets.open(store, key_file(tmp_path), PROJECTS)
        (moved,) = (each.secret for each in store.load_secrets() if each.secret.name != "third")
        role = Role(command=("x",), secrets=(SecretUse(secret=moved.name, directory="/a"),))
        with pytest.raises(ConflictError, match=r"cannot be opened: it was changed, or belongs somewhere else"):
            await secrets.delivered(moved.project, role)


async def test_a_project_has_at_most_so_many_and_others_are_not_held_up(tmp_path: Path) -> None:
    with trust(tmp_path) as store:
        sealed = b"\x01" + bytes(40)
        store.commit_trust([StoredSecret(secret=secret(f"s{n}"), sealed=sealed) for n in range(MAX_SECRETS)])
        secrets = Secrets(store, load_or_make(key_file(tmp_path), ()), PROJECTS)
        with pytest.raises(ExhaustedError, match="project vision has 200 secrets, which is the most"):
            await secrets.put(secret("more"), {"key": VALUE}, ENTRY, again=False)
        await secrets.put(secret("s0"), {"key": VALUE}, ENTRY, again=True)
        await secrets.put(secret("more", "other"), {"key": VALUE}, ENTRY, again=False)


async def test_without_its_key_a_coordinator_with_secrets_does_not_start(tmp_path: Path) -> None:
    with trust(tmp_path) as store:
        await keep(store, tmp_path)
        key_file(tmp_path).unlink()
        await keep(store, tmp_path, "wandb")
        backup = key_file(tmp_path).read_bytes()
        key_file(tmp_path).unlink()
        with pytest.raises(MusterError, match=r"secrets\.key is gone, and with it the key .* Put a backup"):
            Secrets.open(store, key_file(tmp_path), PROJECTS)
        add_key(key_file(tmp_path), ())
        with pytest.raises(MusterError, match=r"secrets\.key is another key than that of the secrets"):
            Secrets.open(store, key_file(tmp_path), PROJECTS)
        key_file(tmp_path).write_text("rubbish\n")
        with pytest.raises(MusterError, match=r"does not hold a key of 32 bytes in hexadecimal"):
            Secrets.open(store, key_file(tmp_path), PROJECTS)
        key_file(tmp_path).write_bytes(backup)
        assert await Secrets.open(store, key_file(tmp_path), PROJECTS).delivered("vision", WANDB)


async def test_a_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    with trust(tmp_path) as store:
        await keep(store, tmp_path, "wandb")
        key_file(tmp_path).chmod(0o640)
        with pytest.raises(MusterError, match=r"secrets\.key can be read by others than its owner: `chmod 600"):
            Secrets.open(store, key_file(tmp_path), PROJECTS)


@pytest.mark.parametrize("left", [None, "rubbish\n"])
async def test_secrets_whose_key_is_lost_can_be_given_up(tmp_path: Path, left: str | None) -> None:
    with trust(tmp_path) as store:
        await keep(store, tmp_path, "wandb")
        if left is None:
            key_file(tmp_path).unlink()
        else:
            key_file(tmp_path).write_text(left)
        assert [each.name for each in forget_unreadable(store, key_file(tmp_path), ENTRY)] == ["wandb"]
        assert [entry.target for entry in store.audit(AuditWish())] == ["", "vision/wandb"]
        secrets = await keep(store, tmp_path, "wandb")
        assert forget_unreadable(store, key_file(tmp_path), ENTRY) == []
        assert await secrets.delivered("vision", WANDB)


async def test_a_rotated_key_opens_everything_and_the_old_one_nothing(tmp_path: Path) -> None:
    with trust(tmp_path) as store:
        await keep(store, tmp_path, "wandb", "other")
        old, before = key_file(tmp_path).read_text(), {each.sealed for each in store.load_secrets()}
        rotate_key(store, key_file(tmp_path), ENTRY)
        assert key_file(tmp_path).read_text().splitlines()[1:] == old.splitlines()  # until the next start
        secrets = Secrets.open(store, key_file(tmp_path), PROJECTS)
        assert key_file(tmp_path).read_text().splitlines()[1:] == []
        assert not before & {each.sealed for each in store.load_secrets()}
        assert (await secrets.delivered("vision", WANDB))[0].values == {"key": VALUE}
        key_file(tmp_path).write_text(old)
        with pytest.raises(MusterError, match="is another key"):
            Secrets.open(store, key_file(tmp_path), PROJECTS)


async def test_what_was_put_later_is_known_by_when_it_was_made(tmp_path: Path) -> None:
    with trust(tmp_path) as store:
        secrets = await keep(store, tmp_path, "wandb")
        later = replace(secret(), created_at=NOW + timedelta(1), updated_at=NOW + timedelta(1))
        kept = await secrets.put(later, {"key": b"new"}, ENTRY, again=True)
        assert (kept.created_at, kept.updated_at) == (NOW, NOW + timedelta(1))
        assert [each.secret for each in store.load_secrets()] == [kept]


def test_plain_git_finds_user_and_token_by_what_is_set(tmp_path: Path) -> None:
    files = tmp_path / "my secrets" / "gh"
    files.mkdir(parents=True)
    (files / "username").write_text("robot")
    (files / "token").write_text("t0k'$en")
    known = {"gh": replace(secret("gh"), kind=SecretKind.GIT, keys=("token",), server="github.com")}
    role = Role(command=("git",), secrets=(SecretUse(secret="gh", standard_env=True),))
    env = {
        **spelled_out(JobSpec(name="a", roles=(role,)), known).roles[0].env,
        "MUSTER_SECRETS_DIR": str(files.parent),
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_CONFIG_NOSYSTEM": "1",
    }

    def fill(host: str) -> list[str]:
        asked = f"protocol=https\nhost={host}\npath=team/code.git\n\n".encode()
        return (
            subprocess.run(["git", "credential", "fill"], input=asked, env=env, capture_output=True, check=False)
            .stdout.decode()
            .splitlines()
        )

    assert {"username=robot", "password=t0k'$en"} <= set(fill("github.com"))
    assert fill("elsewhere.org") == []


def _run(directory: Path, order: str) -> None:
    engine = create_engine(f"sqlite:///{directory / 'coordinator.db'}")
    with engine.begin() as connection:
        connection.execute(text(order))
    engine.dispose()


def test_a_key_that_cannot_be_read_is_replaced_but_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "secrets.key"
    for damaged in ("half a", "half of another"):
        file.write_text(damaged)
        load_or_make_any(file)

    assert (tmp_path / "secrets.key.unreadable-1").read_text() == "half a"
    assert (tmp_path / "secrets.key.unreadable-2").read_text() == "half of another"
