"""Code that jobs bring along: kept, copied, damaged, and dropped when there is too much of it."""

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from agent.code.copies import add_files, lay_out
from agent.code.kept import KeptCode
from agent.code.places import files_in
from agent.code.questions import no_depot
from agent.code.store import CodeStore
from muster.domain.data.code import JobCode
from muster.domain.data.tree import ContentTree
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.failure import ExecutionError
from muster.domain.jobs.job import InlineFile, Role
from muster.rpc.channel import Credentials
from muster.transfer.folder import read_folder
from muster.transfer.objects import ObjectFiles
from tests.unit.agent.core.ledger_builders import assignment


def folder_with(directory: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def kept(cache: Path, folder: Path) -> ContentTree:
    """The folder as a node has it that has fetched it before."""
    tree, objects = read_folder(folder, now_ns=0).tree, ObjectFiles(cache)
    contents = {each.content: (folder / each.path).read_bytes() for each in tree.entries if not each.is_link}
    for digest, content in {**contents, tree.digest: tree.form}.items():
        with objects.arriving(digest, len(content)) as arriving:
            arriving.write(content)
            arriving.commit()
    return tree


def test_a_copy_is_the_folder_and_nothing_that_was_there_before(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "code", {"lib/a.py": "a", "train.sh": "run"})
    (folder / "train.sh").chmod(0o700)
    (folder / "latest").symlink_to("lib/a.py")
    tree = kept(tmp_path / "cache", folder)
    into = folder_with(tmp_path / "copy", {"old": "x"})

    lay_out(tree, ObjectFiles(tmp_path / "cache"), into)

    assert read_folder(into, now_ns=0).tree == tree
    assert (into / "lib" / "a.py").stat().st_mode & 0o777 == 0o644
    assert (into / "train.sh").stat().st_mode & 0o777 == 0o755


def test_what_was_damaged_on_the_node_is_never_given_out_and_fetched_anew(tmp_path: Path) -> None:
    tree = kept(tmp_path / "cache", folder_with(tmp_path / "code", {"a.py": "right"}))
    (object_of_a,) = (tmp_path / "cache" / "objects").rglob(tree.objects[0].digest)
    object_of_a.chmod(0o600)
    object_of_a.write_text("wrong")

    with pytest.raises(ExecutionError, match=r"a\.py was damaged; another attempt fetches it anew"):
        lay_out(tree, ObjectFiles(tmp_path / "cache"), tmp_path / "copy")

    assert ObjectFiles(tmp_path / "cache").size(tree.objects[0].digest) is None


def test_a_file_of_the_job_is_not_led_out_of_the_code_by_links_in_it(tmp_path: Path) -> None:
    copy = folder_with(tmp_path / "copy", {"a": "x"})
    (copy / "out").symlink_to("..")
    file = InlineFile(path="out/record", content=b"x")

    with pytest.raises(ExecutionError, match="a link of the code leads out/record out of it"):
        add_files({"out/record": file}, copy)

    assert not (tmp_path / "record").exists()


def test_files_below_a_directory_are_told_apart_from_others() -> None:
    inside, beside = (InlineFile(path=name, content=b"") for name in ("a/b", "c"))

    assert files_in({"/muster/code/a/b": inside, "/muster/coded": beside}, "/muster/code") == {"a/b": inside}


def test_what_was_used_longest_ago_goes_first_and_what_is_needed_stays(tmp_path: Path) -> None:
    first = kept(tmp_path / "cache", folder_with(tmp_path / "one", {"a": "1" * 100}))
    second = kept(tmp_path / "cache", folder_with(tmp_path / "two", {"a": "2" * 100}))
    store = KeptCode(tmp_path / "cache", no_depot, str, Credentials, kept=0)

    asyncio.run(store.fetch(bringing(second), code_of(second), lambda _: None))
    store.trim(second)

    objects = ObjectFiles(tmp_path / "cache")
    assert [objects.size(tree.digest) is None for tree in (first, second)] == [True, False]


def test_code_that_is_here_is_asked_of_nobody(tmp_path: Path) -> None:
    tree = kept(tmp_path / "cache", folder_with(tmp_path / "code", {"a": "x"}))
    store = CodeStore(tmp_path / "cache")

    asyncio.run(store.fetch(bringing(tree), lambda _: None))
    store.lay_out(bringing(tree).execution, tmp_path / "copy", {"more": InlineFile(path="more", content=b"y")})

    assert {path.name for path in (tmp_path / "copy").iterdir()} == {"a", "more"}


def test_shared_code_that_nobody_has_changed_is_used_without_a_look_at_its_files(tmp_path: Path) -> None:
    tree = kept(tmp_path / "cache", folder_with(tmp_path / "folder", {"a": "x"}))
    store, links = CodeStore(tmp_path / "cache"), [tmp_path / name / "code" for name in ("one", "other")]
    for link in links:
        link.parent.mkdir()
        asyncio.run(store.fetch(sharing(tree), lambda _: None))
        store.share(sharing(tree), link)
        store.forget(sharing(tree).execution)
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)  # whoever looks for an object finds none

    assert [(link / "a").read_text() for link in links] == ["x", "x"]


def test_shared_code_that_is_changed_after_it_was_fetched_is_not_given_out(tmp_path: Path) -> None:
    tree = kept(tmp_path / "cache", folder_with(tmp_path / "folder", {"a": "x"}))
    store, links = CodeStore(tmp_path / "cache"), [tmp_path / name / "code" for name in ("one", "other")]
    for link in links:
        link.parent.mkdir()
    asyncio.run(store.fetch(sharing(tree), lambda _: None))
    store.share(sharing(tree), links[0])
    store.forget(sharing(tree).execution)
    asyncio.run(store.fetch(sharing(tree), lambda _: None))
    shutil.rmtree(tmp_path / "cache")
    (links[0] / "a").chmod(0o600)

    with pytest.raises(ExecutionError, match="was changed just now; another attempt fetches it anew"):
        store.share(sharing(tree), links[1])


def sharing(tree: ContentTree) -> Assignment:
    return replace(assignment(), role=Role(command=("true",), code=replace(code_of(tree), writable=False)))


def bringing(tree: ContentTree) -> Assignment:
    return replace(assignment(), role=Role(command=("true",), code=code_of(tree)))


def code_of(tree: ContentTree) -> JobCode:
    return JobCode(tree=tree.digest, size=len(tree.form))
