from muster.client.files.ignored import without_ignored
from muster.transfer.ignore_rules import IgnoreRules
from tests.unit.client.files.tree_values import directory, file, listing


def test_what_stands_in_an_ignored_directory_goes_with_it() -> None:
    rules = IgnoreRules()
    rules.learn("", ["out/", "!kept.txt"])
    found = without_ignored(
        listing(directory("d"), directory("d/out"), file("d/out/kept.txt"), file("d/a"), troubles={"d/out": "no"}),
        rules,
    )
    assert list(found.entries) == ["d", "d/a"]
    assert found.holding_ignored == {"d", "d/out"}
    assert found.troubles == {}
