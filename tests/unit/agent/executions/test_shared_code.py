"""Code that executions of a node share: laid out once, seen as it was sent, and there as long as one of them is."""

from pathlib import Path

import pytest

from agent.code.shared import SHARED_CODE_KEPT, SharedCode
from muster.domain.data.tree import ContentTree
from muster.transfer.folder import read_folder
from muster.transfer.objects import ObjectFiles


class Node:
    """The directories of a node."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shared = SharedCode(path / "code")
        self.looked = 0
        """How often a directory was looked through, or laid out."""

    def tree(self, text: str) -> ContentTree:
        """Code with a file, a program and a link, as the node has it that has fetched it."""
        folder = self.path / f"folder-{text}"
        (folder / "lib").mkdir(parents=True)
        (folder / "lib" / "words.txt").write_text(text)
        (folder / "run").write_text(text)
        (folder / "run").chmod(0o755)
        (folder / "latest").symlink_to("lib/words.txt")
        tree, objects = read_folder(folder, now_ns=0).tree, ObjectFiles(self.path / "cache")
        for each in tree.objects:
            with objects.arriving(each.digest, each.size) as arriving:
                arriving.write(text.encode())
                arriving.commit()
        return tree

    def show(self, tree: ContentTree, execution: str) -> Path:
        """Where an execution finds it."""
        link = self.path / "executions" / execution / "code"
        link.parent.mkdir(parents=True, exist_ok=True)

        def looked() -> ContentTree:
            self.looked += 1
            return tree

        self.shared.show(tree.digest, looked, ObjectFiles(self.path / "cache"), link)
        return link

    def end(self, execution: str) -> None:
        (self.path / "executions" / execution / "code").unlink()

    def there(self) -> set[str]:
        return {path.name for path in (self.path / "code").iterdir()}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_executions_with_the_same_code_see_one_directory(node: Node) -> None:
    tree = node.tree("one")
    first, second = node.show(tree, "a"), node.show(tree, "b")
    assert first.readlink() == second.readlink()
    assert read_folder(first.readlink(), now_ns=0).tree == tree
    modes = [path.stat().st_mode & 0o777 for path in (first, first / "lib", first / "lib" / "words.txt", first / "run")]
    assert modes == [0o555, 0o555, 0o444, 0o555]


def test_what_somebody_has_changed_is_laid_out_anew(node: Node) -> None:
    tree = node.tree("one")
    shown = node.show(tree, "a")
    words = shown / "lib" / "words.txt"
    words.chmod(0o644)
    words.write_text("two")
    words.chmod(0o444)
    assert (node.show(tree, "b") / "lib" / "words.txt").read_text() == "one"
    assert node.there() == {tree.digest, f"{tree.digest}.0"}  # whoever has it mounted still sees it


def test_what_somebody_has_added_is_gone_for_those_who_come_later(node: Node) -> None:
    tree = node.tree("one")
    shown = node.show(tree, "a").readlink()
    shown.chmod(0o755)
    (shown / "more").touch()
    assert not (node.show(tree, "b") / "more").exists()


def test_what_is_used_stays_and_of_the_rest_the_newest(node: Node) -> None:
    used = node.tree("used")
    node.show(used, "a")
    for number in range(SHARED_CODE_KEPT + 2):
        node.show(node.tree(str(number)), f"other-{number}")
        node.end(f"other-{number}")
    last = node.tree("last")
    node.show(last, "b")
    assert {used.digest, last.digest} <= node.there()
    assert len(node.there()) == 2 + SHARED_CODE_KEPT


def test_what_nobody_has_changed_is_not_looked_through_again(node: Node) -> None:
    tree = node.tree("one")
    shown = [node.show(tree, execution) for execution in ("a", "b", "c")]
    assert (shown[2] / "lib" / "words.txt").read_text() == "one"
    assert node.shared.holds(tree.digest)
    assert node.looked == 1


def test_a_restarted_agent_looks_once_through_what_is_there(node: Node) -> None:
    tree = node.tree("one")
    node.show(tree, "a")
    node.shared = SharedCode(node.path / "code")
    assert not node.shared.holds(tree.digest)
    node.show(tree, "b")
    node.show(tree, "c")
    assert (node.looked, node.shared.holds(tree.digest)) == (2, True)


def test_another_directory_in_its_place_is_noticed(node: Node) -> None:
    tree = node.tree("one")
    shown = node.show(tree, "a").readlink()
    shown.rename(shown.with_name("gone"))
    shown.mkdir()
    assert not node.shared.holds(tree.digest)
    assert (node.show(tree, "b") / "lib" / "words.txt").read_text() == "one"


def test_what_cannot_be_watched_is_looked_through_whenever_it_is_used(node: Node) -> None:
    node.shared = SharedCode(node.path / "code", most_watched=1)
    tree = node.tree("one")
    shown = [node.show(tree, execution) for execution in ("a", "b")]
    assert (node.looked, shown[0].readlink()) == (2, shown[1].readlink())
    assert not node.shared.holds(tree.digest)
