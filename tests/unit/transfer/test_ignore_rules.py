"""Which files are left out, as git would leave them out."""

import pytest

from muster.transfer.ignore_rules import IgnoreRuleError, IgnoreRules


def test_rules_of_a_directory_hold_below_it_alone() -> None:
    rules = IgnoreRules()
    rules.learn("src", ["*.o", "/only-here"])
    assert rules.ignores("src/a.o", directory=False)
    assert rules.ignores("src/deep/a.o", directory=False)
    assert rules.ignores("src/only-here", directory=False)
    assert not rules.ignores("src/deep/only-here", directory=False)
    assert not rules.ignores("a.o", directory=False)


def test_the_nearest_directory_decides_and_the_last_rule_in_it() -> None:
    rules = IgnoreRules()
    rules.learn("", ["*.log", "!keep.log"])
    rules.learn("a", ["keep.log"])
    assert rules.ignores("x.log", directory=False)
    assert not rules.ignores("keep.log", directory=False)
    assert rules.ignores("a/keep.log", directory=False)


def test_a_rule_with_a_slash_at_its_end_means_directories() -> None:
    rules = IgnoreRules()
    rules.learn("", ["build/"])
    assert rules.ignores("build", directory=True)
    assert not rules.ignores("build", directory=False)


def test_the_command_line_goes_first() -> None:
    rules = IgnoreRules(["*.pt", "!best.pt"])
    rules.learn("", ["best.pt", "!last.pt"])
    assert rules.ignores("last.pt", directory=False)
    assert not rules.ignores("best.pt", directory=False)


def test_the_directory_of_git_is_left_out_unless_somebody_wants_it() -> None:
    rules = IgnoreRules()
    assert rules.ignores(".git", directory=True)
    rules.learn("", ["!.git/"])
    assert not rules.ignores(".git", directory=True)


def test_a_rule_that_is_none_is_told() -> None:
    with pytest.raises(IgnoreRuleError, match="--exclude"):
        IgnoreRules(["!"])
