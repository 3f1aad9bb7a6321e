"""Volumes that stay on a node: what is kept of them, which go when there is too much, and that none goes by halves."""

import json
import os
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from agent.core.launching.job_user import JobUser
from agent.executions.layout import ExecutionDirectory
from agent.executions.volumes.amounts import bytes_in
from agent.executions.volumes.eviction import HeldVolume, longest_unused, surplus
from agent.executions.volumes.kept import KeptVolumes
from agent.executions.volumes.node_volumes import NodeVolumes
from muster.domain.data.volume import RemovalOutcome, Volume, VolumeId, VolumeKeep
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind

MIB = 2**20
MODELS = Volume(name="models", size=4 * MIB, keep=VolumeKeep.NODE)
VISION = VolumeId("vision", "models")


def held(name: str, size: int, used_at: float, promised: int | None = None) -> HeldVolume:
    return HeldVolume(id=VolumeId("vision", name), bytes=size, used_at=used_at, promised=promised)


class Node:
    """The volumes of a node, whose clock counts up by one with each look at it."""

    def __init__(self, path: Path, limit: int = 100 * MIB) -> None:
        self.path = path
        self.limit = limit
        (path / "executions").mkdir(exist_ok=True)
        self.restart()

    def restart(self) -> None:
        self.kept = KeptVolumes(self.limit, count(1_000_000.0).__next__)
        self.volumes = NodeVolumes(self.path / "volumes", self.kept)

    @property
    def root(self) -> Path:
        return self.path / "volumes"

    def directory(self, name: str) -> ExecutionDirectory:
        return ExecutionDirectory(self.path / "executions", ExecutionId(name))

    def begin(self, name: str, volume: Volume = MODELS, project: str = "vision", user: JobUser | None = None) -> Path:
        return self.volumes.make(self.directory(name), project, [volume], user)[volume.name]

    def run(self, name: str, volume: Volume = MODELS, written: int = 0, project: str = "vision") -> Path:
        """An execution that writes so much, and is over."""
        path = self.begin(name, volume, project)
        (path / f"by-{name}").write_bytes(b"x" * written)
        self.volumes.clear(self.directory(name))
        return path

    def names(self) -> list[str]:
        return [str(each.id) for each in self.kept.told(self.root)]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_longest_unused_go_first_and_none_that_is_in_use() -> None:
    volumes = [held("a", 5, 3), held("b", 5, 1, promised=9), held("c", 5, 2), held("d", 5, 4)]

    assert [each.id.name for each in longest_unused(volumes, 6, 0) or ()] == ["c", "a"]
    assert [each.id.name for each in longest_unused(volumes, 0, 1) or ()] == ["c"]
    assert longest_unused(volumes, 0, 0) == []


def test_where_all_that_nobody_uses_would_not_do_nothing_goes() -> None:
    volumes = [held("a", 5, 3), held("b", 50, 1, promised=50)]

    assert longest_unused(volumes, 6, 0) is None
    assert longest_unused(volumes, 0, 2) is None


def test_what_is_in_use_counts_as_what_was_promised() -> None:
    assert surplus([held("a", 5, 1, promised=20), held("b", 7, 1), held("c", 9, 1, promised=0)], 30) == 6
    assert surplus([held("a", 5, 1)], 30) == 0


def test_what_a_job_leaves_is_there_for_the_next_one_and_after_a_restart_of_the_agent(node: Node) -> None:
    node.run("first", written=MIB)
    node.restart()
    node.volumes.sweep(node.path / "executions", ())

    assert (node.begin("second") / "by-first").stat().st_size == MIB
    [told] = node.kept.told(node.root)
    assert (told.id, told.bytes >= MIB) == (VISION, True)


def test_several_use_one_at_once_and_each_project_has_its_own(node: Node) -> None:
    first, second = node.begin("first"), node.begin("second")
    other = node.begin("third", project="language")

    assert first == second != other
    assert node.names() == ["language/models", "vision/models"]


def test_one_in_use_is_not_removed_and_the_users_are_named_until_they_are_gone(node: Node) -> None:
    path = node.begin("first")
    node.restart()

    assert node.kept.take_away(node.root, VISION) == (RemovalOutcome.IN_USE, "first")
    assert path.exists()
    node.volumes.sweep(node.path / "executions", ())  # nobody knows that execution any more
    assert node.kept.take_away(node.root, VISION) == (RemovalOutcome.REMOVED, "")
    assert not path.exists()
    assert node.names() == []


def test_what_is_not_there_or_no_name_is_unknown(node: Node) -> None:
    node.run("first")

    for volume in (VolumeId("vision", "other"), VolumeId("..", "kept"), VolumeId("vision", "../../x")):
        assert node.kept.take_away(node.root, volume) == (RemovalOutcome.UNKNOWN, "")
    with pytest.raises(ExecutionError, match="cannot be the name of a directory"):
        node.begin("second", project="../vision")


def test_one_whose_removal_broke_off_is_never_found_again(node: Node) -> None:
    node.run("first", written=MIB)
    node.kept.take_away(node.root, VISION)  # and the agent is killed before it removes what lies there
    node.restart()

    assert not (node.begin("second") / "by-first").exists()
    assert bytes_in(node.root / "going") >= MIB
    node.volumes.sweep(node.path / "executions", {"second"})
    assert bytes_in(node.root / "going") < MIB
    assert node.names() == ["vision/models"]


def test_one_that_was_being_made_is_made_anew(node: Node) -> None:
    half = node.root / "kept" / "vision" / "models" / "data.new"
    half.mkdir(parents=True)
    (half / "left").touch()

    assert node.names() == []
    assert [*node.begin("first").iterdir()] == []


def test_beyond_the_limit_of_the_node_the_longest_unused_go(tmp_path: Path) -> None:
    node = Node(tmp_path, limit=10 * MIB)
    for name in ("one", "two", "three"):
        node.run(f"of-{name}", replace(MODELS, name=name), written=2 * MIB)
    node.begin("uses-two", replace(MODELS, name="two"))

    node.begin("big", replace(MODELS, name="big", size=5 * MIB))

    assert node.names() == ["vision/big", "vision/two"]


def test_more_than_the_node_keeps_is_refused_with_the_limit_and_nothing_goes(tmp_path: Path) -> None:
    node = Node(tmp_path, limit=10 * MIB)
    node.run("first", replace(MODELS, name="other"), written=MIB)

    with pytest.raises(
        ExecutionError, match=r"this node keeps at most 10\.0 MiB of volumes \(--kept-size\)"
    ) as refused:
        node.begin("second", replace(MODELS, size=20 * MIB))
    assert refused.value.kind is FailureKind.DISK_FULL
    assert node.names() == ["vision/other"]


def test_what_is_too_much_once_an_execution_is_over_goes(tmp_path: Path) -> None:
    node = Node(tmp_path, limit=5 * MIB)
    node.run("first", replace(MODELS, name="old"), written=2 * MIB)
    node.run("second", written=4 * MIB)

    assert node.names() == ["vision/models"]


def test_one_with_more_in_it_than_a_job_says_is_refused_before_user_code_runs(node: Node) -> None:
    node.run("first", written=4 * MIB)

    with pytest.raises(ExecutionError, match=r"the volume models holds 4\.0 MiB; its size is 1\.0 MiB") as refused:
        node.begin("second", replace(MODELS, size=MIB))
    assert refused.value.kind is FailureKind.VOLUME_FULL
    assert node.begin("third", replace(MODELS, size=MIB, writable=False)).exists()


def test_user_code_of_another_user_shares_one_behind_a_closed_directory(node: Node) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives directories to others")
    path = node.begin("first", user=JobUser(uid=1001, gid=1001))
    assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (1001, 0o770)

    node.begin("second", user=JobUser(uid=1002, gid=1002))

    assert path.stat().st_mode & 0o7777 == 0o1777
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(ExecutionError, match="belongs to containers of several users"):
        node.volumes.make(node.directory("process"), "vision", [MODELS], JobUser(uid=1001, gid=1001), walked=True)


def test_a_link_in_a_volume_is_not_followed_when_it_is_measured(node: Node) -> None:
    outside = node.path / "outside"
    outside.mkdir()
    (outside / "large").write_bytes(b"x" * 3 * MIB)
    path = node.begin("first")
    (path / "link").symlink_to(outside)
    node.volumes.clear(node.directory("first"))

    [told] = node.kept.told(node.root)
    assert told.bytes < MIB


def test_what_changes_is_worth_telling_and_what_hardly_does_is_not(node: Node) -> None:
    node.begin("first")
    before = node.kept.revision
    node.kept.note(node.root, VISION, 16 * MIB)
    assert node.kept.revision == before + 1
    node.kept.note(node.root, VISION, 16 * MIB + 1000)
    assert node.kept.revision == before + 1


def test_a_damaged_note_makes_a_volume_the_oldest_one_and_loses_nothing(node: Node) -> None:
    path = node.run("first", written=MIB)
    (path.parent / "seen.json").write_text(json.dumps({"used": "x"}))

    [told] = node.kept.told(node.root)
    assert (told.bytes, told.used_at.timestamp()) == (0, 0.0)
    assert (node.begin("second") / "by-first").exists()
