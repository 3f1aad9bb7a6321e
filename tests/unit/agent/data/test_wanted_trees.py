"""Outputs of jobs as inputs: which files are wanted, where they lie, and what executions see of them."""

from hashlib import sha256
from pathlib import Path

import pytest

from agent.data.cache import InputCache
from agent.data.trees import MOST_INPUT_METADATA, metadata_of, parts_of, wanted_of
from muster.domain.data.job_input import JobInput
from muster.domain.data.job_source import InputTree
from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree, content_tree
from muster.domain.jobs.failure import ExecutionError
from tests.unit.agent.core.ledger_builders import assignment


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def tree(files: dict[str, bytes], *programs: str) -> ContentTree:
    return content_tree(
        ContentEntry(
            path=path,
            kind=ContentKind.PROGRAM if path in programs else ContentKind.FILE,
            size=len(content),
            content=digest(content),
        )
        for path, content in files.items()
    )


def cache(path: Path) -> InputCache:
    (path / "executions" / "a").mkdir(parents=True)
    return InputCache(path / "inputs", path / "executions", keep_free=0)


def arrived(there: InputCache, *contents: bytes) -> None:
    """Have objects in the cache that an execution uses."""
    there.lease("a", map(digest, contents))
    for content in contents:
        with there.arriving(digest(content), len(content)) as arriving:
            arriving.write(content)
            arriving.commit()
    there.keep_arrived(map(digest, contents))


def paths(only: tuple[str, ...], below: str = "") -> list[str]:
    left = tree({"model/a.pt": b"1", "model/deep/b.pt": b"2", "log.txt": b"3"})
    each = JobInput(name="base", source="job:k3j2v8xa/*", only=only)
    return [entry.path for entry in wanted_of(each, InputTree(tree=left.digest, size=1, below=below), left)]


@pytest.mark.parametrize(
    ("only", "wanted"),
    [
        ((), ["log.txt", "model/a.pt", "model/deep/b.pt"]),
        (("model/*",), ["model/a.pt"]),
        (("**/*.pt",), ["model/a.pt", "model/deep/b.pt"]),
        (("log.txt", "model/deep/"), ["log.txt", "model/deep/b.pt"]),
        (("other",), []),
    ],
)
def test_names_with_wildcards_say_which_files_are_wanted(only: tuple[str, ...], wanted: list[str]) -> None:
    assert paths(only) == wanted


def test_each_execution_of_many_has_a_directory_to_which_names_do_not_refer() -> None:
    assert paths(("model/*",), below="worker-1") == ["worker-1/model/a.pt"]


@pytest.mark.parametrize(
    ("rank", "paths"),
    [(0, ["worker-0/a", "worker-1/a"]), (1, ["worker-0/b"]), (2, ["worker-0/c"])],
)
def test_outputs_are_split_without_the_files_that_tell_of_others(rank: int, paths: list[str]) -> None:
    left = [tree({"a": b"1", "a.metadata.json": b"{}", "b": b"2", "c": b"3"}), tree({"a": b"1"})]
    each = JobInput(name="base", source="job:k3j2v8xa/*", split=True)
    sources = [InputTree(tree=it.digest, size=1, below=f"worker-{place}") for place, it in enumerate(left)]
    wanted = [wanted_of(each, source, it) for source, it in zip(sources, left, strict=True)]
    told = dict(zip(sources, metadata_of(left), strict=True))
    part = parts_of(assignment(role_rank=rank, role_size=3), each, wanted, told)
    assert [entry.path for entries in part for entry in entries] == paths


def test_a_part_that_has_no_files_is_a_directory_all_the_same(tmp_path: Path) -> None:
    assert list(cache(tmp_path).shown_tree(content_tree([])).iterdir()) == []


def test_a_tree_is_shown_with_its_directories_and_programs_and_nobody_can_write_to_it(tmp_path: Path) -> None:
    there = cache(tmp_path)
    arrived(there, b"one", b"#!run")
    shown = there.shown_tree(tree({"a/b/one.txt": b"one", "run": b"#!run", "same": b"#!run"}, "run"))

    assert (shown / "a" / "b" / "one.txt").read_bytes() == b"one"
    modes = {each: (shown / each).stat().st_mode & 0o777 for each in (".", "a", "a/b", "a/b/one.txt", "run", "same")}
    assert modes == {".": 0o555, "a": 0o555, "a/b": 0o555, "a/b/one.txt": 0o444, "run": 0o555, "same": 0o444}


def test_a_tree_is_laid_out_once_and_anew_after_somebody_has_changed_it(tmp_path: Path) -> None:
    there = cache(tmp_path)
    arrived(there, b"one", b"#!run")
    files = tree({"a/one": b"one", "run": b"#!run"}, "run")
    first = there.shown_tree(files)
    before = (first / "run").stat().st_ino
    assert (there.shown_tree(files) / "run").stat().st_ino == before

    (first / "run").chmod(0o755)
    (first / "run").write_bytes(b"#!bad")
    assert (there.shown_tree(files) / "run").read_bytes() == b"#!run"


def test_a_tree_that_nobody_uses_goes_with_its_objects(tmp_path: Path) -> None:
    there = cache(tmp_path)
    arrived(there, b"one")
    shown = there.shown_tree(tree({"a/one": b"one"}))
    there.release("a")
    with pytest.raises(ExecutionError):
        there.make_space(1 << 60, "base")

    assert not shown.exists()
    assert there.has(digest(b"one")) is None


def test_an_object_that_is_half_here_is_gone_on_with(tmp_path: Path) -> None:
    there = cache(tmp_path)
    with there.arriving(digest(b"one"), 3) as half:
        half.write(b"on")
    with there.arriving(digest(b"one"), 3) as rest:
        assert rest.offset == 2
    assert there.has(digest(b"one")) is None


def test_what_an_object_holds_is_compared_with_its_name(tmp_path: Path) -> None:
    there = cache(tmp_path)
    arrived(there, b"one")
    assert there.content(digest(b"one")) == b"one"
    there.keep_arrived([digest(b"one")])
    path = there.directory / "objects" / digest(b"one")[:2] / digest(b"one")
    path.chmod(0o600)
    path.write_bytes(b"two")
    there.keep_arrived([digest(b"one")])
    assert there.content(digest(b"one")) is None


def test_files_that_tell_of_others_are_read_up_to_a_limit_over_all_trees() -> None:
    small = tree({"a.pt": b"1", "a.pt.metadata.json": b"{}", "b.pt.metadata.json": b"{}"})
    listed = ContentEntry(
        path="valohai.metadata.jsonl", kind=ContentKind.FILE, size=MOST_INPUT_METADATA - 1, content=digest(b"")
    )
    large = content_tree([listed])

    assert [[entry.path for entry in told] for told in metadata_of([small, large, small])] == [
        ["a.pt.metadata.json"],
        [],
        ["a.pt.metadata.json"],
    ]
