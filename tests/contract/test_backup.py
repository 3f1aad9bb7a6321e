"""Backups: what is in them, who can read them, and that a restore is all or nothing."""

import json
import os
import sqlite3
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest

from coordinator.backup.checking import check_state
from coordinator.backup.making import BackupWish, make_backup
from coordinator.backup.manifest import BackupError, BackupManifest, BackupPart, KeyKeeping, read_manifest
from coordinator.backup.progress import BackupProgress
from coordinator.backup.restoring import Restored, RestoreWish, restore
from coordinator.fleet.files import FleetFiles
from coordinator.store.directory import StateDirectory
from coordinator.store.logs.logs import LogStore
from coordinator.store.records.sql import SqlStore
from coordinator.store.store import StoreError
from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.authority import load_or_make
from coordinator.trust.records import StoredToken
from muster.domain.fleet.access import EVERYWHERE, Access, Account, AccountKind, IssuedToken
from muster.domain.ids import ExecutionId, JobId
from muster.trust.tokens import digest, new_api_token
from tests.contract.log_records import TEN, chunk
from tests.contract.records import gang

NOW = datetime.now(UTC)
A = ExecutionId("a-1-0")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDirectory]:
    """A fleet with a job, its log, an admin and a bundle; a coordinator has it open."""
    directory = StateDirectory(tmp_path / "state")
    with directory.lock():
        fleet = FleetFiles(directory)
        fleet.allow_start(NOW)
        store, trust, logs = (
            SqlStore.open(directory.database),
            SqlTrust.open(directory.database),
            LogStore(directory.logs),
        )
        load_or_make(directory.path / "trust", NOW)
        fleet.have_begun(authority=True)
        store.commit(gang("a", size=1))
        logs.append(A, 0, chunk(*TEN))
        secret = new_api_token()
        (directory.path / "admin-token").write_text(str(secret))
        (directory.path / "admin-token").chmod(0o600)
        admin = Account(name="admin", kind=AccountKind.USER, created_at=NOW, grants={EVERYWHERE: Access.ADMIN})
        token = IssuedToken(id=secret.id, account="admin", note="", created_at=NOW)
        trust.commit_trust([admin, StoredToken(token=token, digest=digest(secret.secret))])
        directory.bundles.mkdir()
        (directory.bundles / f"{'0' * 64}--muster.tar").write_bytes(b"bundle")
        yield directory
        logs.close()
        trust.close()
        store.close()


def quiet() -> BackupProgress:
    return BackupProgress(StringIO(), "test")


def backup(state: StateDirectory, name: str = "backup", **wish: Any) -> Path:
    file = state.path.parent / name
    make_backup(state, BackupWish(file=file, **wish), NOW, quiet())
    return file


def restored(file: Path, target: Path, **wish: Any) -> Restored:
    directory = StateDirectory(target)
    with directory.lock():
        return restore(directory, RestoreWish(file=file, **wish), NOW, quiet())


def left_in(target: Path) -> list[str]:
    return sorted(path.name for path in target.iterdir() if path.name != "coordinator.lock")


def test_a_restored_fleet_is_the_one_that_was_backed_up(state: StateDirectory, tmp_path: Path) -> None:
    target = StateDirectory(tmp_path / "target")
    done = restored(backup(state, bundles=True), target.path)

    assert done.wakes is not None
    assert (done.wakes.tokens, done.wakes.jobs) == (1, ("a",))
    for name in ("fleet.key", "trust/authority.pem", "trust/authority.key", "trust/fleet-id", "admin-token"):
        assert (target.path / name).read_bytes() == (state.path / name).read_bytes()
    with target.lock(), closing(LogStore(target.logs)) as logs, closing(SqlStore.open(target.database)) as store:
        FleetFiles(target).allow_start(NOW)  # with the original still there: a restore is no copy
        assert [job.id for job in store.load().jobs] == ["a"]
        assert [(event.kind, event.text) for event in store.fleet_events(0, 9)] == [
            ("restored", f"as the fleet was at {NOW.isoformat(timespec='seconds')}")
        ]
        assert logs.append(A, 0, chunk(*TEN)) == len(chunk(*TEN))
        assert list(logs.read(A).records) == TEN
        assert [path.read_bytes() for path in target.bundles.iterdir()] == [b"bundle"]
    assert check_state(target, NOW, quiet()) == []


def test_a_backup_and_all_that_a_restore_makes_is_for_the_owner_only(state: StateDirectory, tmp_path: Path) -> None:
    file = backup(state, keys_file=tmp_path / "keys")
    restored(file, tmp_path / "target", keys_file=tmp_path / "keys")

    files = [file, tmp_path / "keys", *(path for path in (tmp_path / "target").rglob("*") if path.is_file())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_a_backup_lists_what_it_has_and_what_it_leaves_out(state: StateDirectory, tmp_path: Path) -> None:
    with tarfile.open(backup(state, logs=False)) as tar:
        names = tar.getnames()
        content = tar.extractfile("MANIFEST.json")
        assert content is not None
        said = json.load(content)

    assert names == ["coordinator.db", "keys", "MANIFEST.json"]
    assert [part["name"] for part in said["parts"]] == ["coordinator.db", "keys"]
    assert said["fleet"] == (state.path / "trust" / "fleet-id").read_text().strip()
    assert [each.split()[0] for each in said["left_out"]][:2] == ["logs", "bundles:"]
    assert restored(tmp_path / "backup", tmp_path / "target").manifest.left_out == tuple(said["left_out"])


def test_keys_that_are_apart_or_sealed_are_not_in_the_backup(state: StateDirectory, tmp_path: Path) -> None:
    passphrase = tmp_path / "passphrase"
    passphrase.write_text("swordfish\n")
    apart, sealed = (
        backup(state, "apart", keys_file=tmp_path / "keys"),
        backup(state, "sealed", passphrase_file=passphrase),
    )
    key = (state.path / "trust" / "authority.key").read_bytes()

    for file in (apart, sealed):
        assert key.hex().encode() not in file.read_bytes()
    restored(apart, tmp_path / "one", keys_file=tmp_path / "keys")
    restored(sealed, tmp_path / "two", passphrase_file=passphrase)
    assert (tmp_path / "one" / "trust" / "authority.key").read_bytes() == key
    assert (tmp_path / "two" / "trust" / "authority.key").read_bytes() == key


def test_without_the_right_keys_nothing_is_restored(state: StateDirectory, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("swordfish\n")
    wrong.write_text("haddock\n")
    sealed, apart = backup(state, "sealed", passphrase_file=right), backup(state, "apart", keys_file=tmp_path / "keys")

    for file, wish, reason in (
        (sealed, {"passphrase_file": wrong}, "the passphrase is not the one"),
        (sealed, {}, "name the file with the passphrase"),
        (apart, {}, "name it with --keys FILE"),
        (apart, {"keys_file": wrong}, "does not hold the keys of this backup"),
    ):
        with pytest.raises(BackupError, match=reason):
            restored(file, tmp_path / "target", **wish)
    assert left_in(tmp_path / "target") == []


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    at = content.index(b"line 3")
    content[at : at + 6] = b"line 4"
    file.write_bytes(content)


def add(file: Path) -> None:
    with tarfile.open(file, "a") as tar:
        tar.addfile(tarfile.TarInfo("../escaped"), BytesIO())


def nothing(file: Path) -> None:
    file.write_bytes(b"no backup")


@pytest.mark.parametrize("harm", [cut, flip, add, nothing])
def test_a_harmed_backup_is_refused_before_anything_is_touched(
    state: StateDirectory, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    file = backup(state)
    harm(file)

    with pytest.raises(BackupError):
        restored(file, tmp_path / "target")

    assert left_in(tmp_path / "target") == []
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize("name", ["../x", "logs/../../x/1-0.cri", "/etc/passwd", "trust/authority.key"])
def test_a_list_that_names_other_files_is_refused(state: StateDirectory, tmp_path: Path, name: str) -> None:
    with tarfile.open(backup(state)) as tar:
        content = tar.extractfile("MANIFEST.json")
        assert content is not None
        said = json.load(content)
    said["parts"].append(
        {"name": name, "size": 0, "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
    )
    text = json.dumps(said).encode()
    hostile = tmp_path / "hostile"
    with tarfile.open(hostile, "w") as tar:
        entry = tarfile.TarInfo("MANIFEST.json")
        entry.size = len(text)
        tar.addfile(entry, BytesIO(text))

    with pytest.raises(BackupError, match="names what belongs in none"):
        restored(hostile, tmp_path / "target")


def test_a_directory_that_holds_something_is_not_restored_into(state: StateDirectory, tmp_path: Path) -> None:
    file, target = backup(state), tmp_path / "target"
    target.mkdir(mode=0o700)
    (target / "fleet.key").write_bytes(b"precious")

    with pytest.raises(BackupError, match=r"target is not empty, it has fleet\.key"):
        restored(file, target)

    assert (target / "fleet.key").read_bytes() == b"precious"


class _Interrupting(BackupProgress):
    """Somebody presses Ctrl-C when it comes to a part."""

    def __init__(self, part: str) -> None:
        super().__init__(StringIO(), "test")
        self._part = part

    def tell(self, part: str, done: int, whole: int) -> None:
        del done, whole
        if part == self._part:
            raise KeyboardInterrupt


def test_a_backup_or_restore_that_is_interrupted_leaves_nothing(state: StateDirectory, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    log = "logs/a/1-0.cri"

    with pytest.raises(KeyboardInterrupt):
        make_backup(state, BackupWish(file=out / "backup"), NOW, _Interrupting(log))
    assert list(out.iterdir()) == []

    target = StateDirectory(tmp_path / "target")
    wish = RestoreWish(file=backup(state))
    with target.lock(), pytest.raises(KeyboardInterrupt):
        restore(target, wish, NOW, _Interrupting(log))
    assert left_in(target.path) == []


def test_a_restore_that_was_killed_is_refused_by_a_start_and_begins_anew(state: StateDirectory, tmp_path: Path) -> None:
    file, target = backup(state), StateDirectory(tmp_path / "target")
    target.path.mkdir(mode=0o700)
    (target.path / ".restoring").mkdir()
    (target.path / "fleet.key").write_bytes(b"half")

    with target.lock(), pytest.raises(StoreError, match="a restore began here and did not end: run it again"):
        FleetFiles(target).allow_start(NOW)
    restored(file, target.path)

    assert (target.path / "fleet.key").read_bytes() == (state.path / "fleet.key").read_bytes()
    assert not (target.path / ".restoring").exists()


def test_tokens_are_revoked_on_demand_and_an_admin_gets_a_new_one(state: StateDirectory, tmp_path: Path) -> None:
    file = backup(state)

    later = restored(file, tmp_path / "later", revoke=True, revoke_after=NOW + timedelta(hours=1))
    everyone = restored(file, tmp_path / "everyone", revoke=True)

    assert later.revoked is not None
    assert (later.revoked.tokens, later.revoked.admin) == (0, "")
    assert everyone.revoked is not None
    assert (everyone.revoked.tokens, everyone.revoked.admin) == (1, "admin")
    assert (tmp_path / "later" / "admin-token").read_bytes() == (state.path / "admin-token").read_bytes()
    assert (tmp_path / "everyone" / "admin-token").read_bytes() != (state.path / "admin-token").read_bytes()
    with closing(SqlTrust.open(tmp_path / "everyone" / "coordinator.db")) as trust:
        valid = [stored.token.note for stored in trust.load_trust().tokens if stored.token.valid(NOW)]
    assert valid == ["made by a restore"]


def test_a_backup_has_no_log_of_a_job_that_its_database_does_not_know(state: StateDirectory) -> None:
    with closing(LogStore(state.logs)) as logs:
        logs.append(ExecutionId("newer-1-0"), 0, chunk(*TEN))

    with tarfile.open(backup(state)) as tar:
        assert [name for name in tar.getnames() if name.startswith("logs/")] == ["logs/a/1-0.cri"]


def damage_a_log(state: StateDirectory) -> None:
    file = state.logs / "a" / "1-0.cri"
    file.write_bytes(b"\0" * 10 + file.read_bytes()[10:])


def damage_a_record(state: StateDirectory) -> None:
    with closing(sqlite3.connect(state.database)) as database, database:
        database.execute("UPDATE jobs SET body = '{}'")


def lose_a_key(state: StateDirectory) -> None:
    (state.path / "trust" / "authority.key").unlink()


def swap_a_key(state: StateDirectory) -> None:
    load_or_make(state.path / "other", NOW)
    (state.path / "other" / "authority.key").replace(state.path / "trust" / "authority.key")


def lose_a_log(state: StateDirectory) -> None:
    with closing(sqlite3.connect(state.database)) as database, database:
        database.execute("UPDATE executions SET body = json_set(body, '$.log_kept', json('true'))")
    (state.logs / "a" / "1-0.cri").unlink()


@pytest.mark.parametrize(
    ("harm", "part", "words"),
    [
        (damage_a_log, "logs", "1 lines are damaged"),
        (lose_a_log, "logs", "the log of a-1-0 was complete, and is gone"),
        (damage_a_record, "database", "row 1 of jobs cannot be read"),
        (lose_a_key, "fleet", "trust/authority.key is missing"),
        (swap_a_key, "keys", "is not the key of"),
    ],
)
def test_a_check_finds_what_is_wrong(
    state: StateDirectory, harm: Callable[[StateDirectory], None], part: str, words: str
) -> None:
    assert check_state(state, NOW, quiet()) == []
    harm(state)

    found = check_state(state, NOW, quiet())

    assert {each.part for each in found} == {part}
    assert words in found[0].text


def test_a_manifest_survives_its_own_form() -> None:
    part = BackupPart(name="logs/a/1-0.cri", size=3, sha256="x")
    manifest = BackupManifest(
        muster="1", schema="1", fleet="f", made_at=NOW, keys=KeyKeeping.PLAIN, left_out=("y",), parts=(part,)
    )
    assert read_manifest(manifest.written()) == manifest


def test_dropping_a_job_while_it_is_backed_up_leaves_its_log_out(state: StateDirectory) -> None:
    with closing(LogStore(state.logs)) as logs:
        logs.drop_job(JobId("a"))

    with tarfile.open(backup(state)) as tar:
        assert "logs/a/1-0.cri" not in tar.getnames()
