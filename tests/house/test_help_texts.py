"""What `--help` says: a plain sentence first, every option explained, and two examples that can be typed."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from muster.cli.help import SUBJECTS, SYNONYMS
from muster.cli.program import program

TREE: Any = get_command(program())
FIRST_LINE = 70
"""Characters that the list of commands shows of a first sentence."""
WEAK = re.compile(
    r"(?i)^(of|by|as|for|on|with|in|to|at|those|that|whom|whose|who|their|its|his|how|it|they|how many|at most)\b"
)
"""Words with which no help begins: what is meant is not said."""
PROTECTED = "_protected_args"
"""Where some versions of Click keep the words that belong to an inner command."""
WORDS = 25
"""Most words of a sentence."""


def commands(command: Any = TREE, path: tuple[str, ...] = ("muster",)) -> Iterator[tuple[str, Any]]:
    yield " ".join(path), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


ALL = dict(commands())


def text_of(command: Any) -> str:
    return str(command.help or "").partition("\nExamples:\n")[0]


def examples_of(command: Any) -> list[str]:
    return [line.strip() for line in str(command.help or "").partition("\nExamples:\n")[2].splitlines() if line.strip()]


@pytest.mark.parametrize("name", ALL)
def test_a_command_says_in_a_short_sentence_what_it_does(name: str) -> None:
    first = text_of(ALL[name]).strip().splitlines()[0]

    assert first.endswith((".", ":"))
    assert not WEAK.match(first)
    if name != "muster":
        assert len(first.split(". ")[0]) <= FIRST_LINE + 1


@pytest.mark.parametrize("name", ALL)
def test_every_argument_and_option_is_explained(name: str) -> None:
    wrong = [
        f"{parameter.name}: {parameter.help}"
        for parameter in ALL[name].params
        if not parameter.help or WEAK.match(parameter.help) or not parameter.help.strip().endswith((".", ")"))
    ]

    assert wrong == []


@pytest.mark.parametrize("name", ALL)
def test_sentences_are_short_enough_to_be_read_once(name: str) -> None:
    texts = [text_of(ALL[name]), *(parameter.help or "" for parameter in ALL[name].params)]
    sentences = [each for text in texts for each in re.split(r"(?<=[.:;])\s+", text)]

    assert [each for each in sentences if len(each.split()) > WORDS] == []


@pytest.mark.parametrize("name", ALL)
def test_two_examples_can_be_typed(name: str) -> None:
    examples = examples_of(ALL[name])

    assert len(examples) == 2
    for line in examples:
        for part in re.split(r"[;|>]", line):
            words = shlex.split(part)
            if words[0] == "muster":
                understood(words[1:])


def understood(words: list[str]) -> None:
    """Fail where the program would refuse the words."""
    command, context = TREE, None
    while True:
        context = command.make_context(command.name, list(words), parent=context, resilient_parsing=True)
        rest = [*getattr(context, PROTECTED, ()), *context.args]
        if not getattr(command, "commands", None) or not rest:
            return
        _, inner, words = command.resolve_command(context, list(rest))
        command = inner


def test_every_command_has_its_subject_and_no_subject_a_command_that_is_not_there() -> None:
    listed = [name for names in SUBJECTS.values() for name in names]

    assert sorted(listed) == sorted(name for name, command in TREE.commands.items() if not command.hidden)


def test_a_word_of_another_system_is_none_of_ours() -> None:
    assert SYNONYMS.keys() & TREE.commands.keys() == set()
    for hint in SYNONYMS.values():
        for line in re.findall(r"`(muster [^`]*)`", hint):
            assert shlex.split(line)[1] in TREE.commands
