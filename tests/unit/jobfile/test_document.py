"""What is no YAML document that Muster reads, and where it goes wrong."""

import pytest

from muster.jobfile import JobFileError, load_job
from muster.jobfile.document import atom


def complaint(text: str) -> str:
    with pytest.raises(JobFileError) as refusal:
        load_job(text, "job.yaml")
    return str(refusal.value)


NO_YAML = "is not valid YAML"
ALIGN = "this line begins in no column in which a line above it begins; align it with the keys of its map"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1:1: is empty; a job needs a name, and a command or an image"),
        ("# nothing\n", "1:1: is empty; a job needs a name, and a command or an image"),
        ("---\n...\n", "1:1: is empty; a job needs a name, and a command or an image"),
        ("- name: a\n", "1:1: must be a map with keys such as name and command, not a list"),
        ("train.py\n", '1:1: must be a map with keys such as name and command, not "train.py"'),
        ("name: a\n---\nname: b\n", "2:1: holds more than one YAML document; a file describes one job"),
        (
            "name: a\n b: 2\n",
            f"2:3: {NO_YAML}: this line is indented further than the one above it, whose key has a value already",
        ),
        ('env: {A: "b\n', "1:10: is not valid YAML: the quote that begins here is never closed"),
        ("workdir: echo foo: bar\n", f'1:18: {NO_YAML}: a text with ": " in it must stand in quotes: "echo foo: bar"'),
        ("env:\n  A: b\n C: d\n", f"3:2: {NO_YAML}: {ALIGN}"),
        ("workdir: @a\n", "1:10: is not valid YAML: a text that begins with @ must stand in quotes"),
        (
            'workdir: "a" b\n',
            f"1:14: {NO_YAML}: there is more text after a closing quote; put all of the value in quotes",
        ),
        ("name: a\nworkdir\nuser: b\n", "2:1: is not valid YAML: after this key there is no colon"),
        ("name:\n\t- a\n", "2:1: is not valid YAML: a tab stands where only spaces may"),
        ("name: [a\n", "1:7: is not valid YAML: the list that begins here with [ lacks a comma or its ]"),
        ("name: 'a\n", "1:7: is not valid YAML: the quote that begins here is never closed"),
        ("name: a\nenv: {A: \x07}\n", "2:10: holds the control character U+0007"),
        ('name: "\\UFFFFFFFF"\n', "1:1: is not valid YAML from here on"),
        ('name: "\\ud800"\n', "1:7: holds half a character (a lone surrogate)"),
        ("name: *a\n", "1:7: the alias *a refers to nothing above it; a text that begins with * must stand in quotes"),
        (
            "env: &a {A: *a}\n",
            "1:13: the alias *a refers to nothing above it; a text that begins with * must stand in quotes",
        ),
        ("env:\n  <<: {A: b}\n", "2:3: merge keys (<<) are not part of YAML 1.2; write the keys out"),
        ("name: !!int 5\n", '1:7: the tag "!!int" is not supported; write the plain value'),
        ("env: !mine {}\n", '1:6: the tag "!mine" is not supported; write the plain value'),
        ("? [a]\n: b\n", "1:3: a key must be a word"),
        ("%YAML 1.1\n---\nname: a\n", "2:1: asks for another YAML than 1.2; remove the %YAML line"),
        (f"name: {'[' * 30}{']' * 30}", "1:27: is nested more than 20 levels deep"),
        ("#" * (2**20 + 1), "1:1: is larger than 1024 KiB"),
    ],
)
def test_an_unreadable_text_is_told_with_its_place(text: str, problem: str) -> None:
    assert complaint(text).splitlines()[0] == f"job.yaml:{problem}"


def test_a_caret_stands_under_the_place_of_a_syntax_error() -> None:
    assert complaint("name: a\nenv: {A: b]\n") == (
        "job.yaml:2:6: is not valid YAML: the map that begins here with { lacks a comma or its }\n"
        "    env: {A: b]\n         ^"
    )


def test_a_repeated_key_is_told_beside_other_problems() -> None:
    assert complaint("name: a\ncommand: x\nenv:\n  A: b\n  A: c\nworkers: 0\n") == (
        "job.yaml:5:3: env.A: stands here a second time; the first is on line 4\n"
        "      A: c\n"
        "      ^\n"
        "job.yaml:6:10: workers: must be at least 1, not 0\n"
        "    workers: 0\n"
        "             ^"
    )


def test_aliases_that_multiply_are_refused() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert complaint(bomb).splitlines()[0] == (
        "job.yaml:5:23: holds more than 50000 values, counting what aliases repeat"
    )


def test_aliases_that_repeat_a_large_text_are_refused() -> None:
    bomb = f"a: &a {'x' * 2**19}\nb: [*a, *a, *a, *a]\n"
    assert complaint(bomb).splitlines()[0] == (
        "job.yaml:2:13: holds more than 2097152 characters, counting what aliases repeat"
    )


def test_line_breaks_of_every_kind_are_counted() -> None:
    assert complaint("name: a\r\ncommand: x\rworkers: 0\n") == (
        "job.yaml:3:10: workers: must be at least 1, not 0\n    workers: 0\n             ^"
    )


def test_a_byte_order_mark_is_no_part_of_the_job() -> None:
    assert load_job("\ufeffname: a\ncommand: x\n", "job.yaml").name == "a"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("NULL", None),
        ("True", True),
        ("no", "no"),
        ("010", 10),
        ("0o17", 15),
        ("0xff", 255),
        ("+4", 4),
        ("-4", -4),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.INF", float("-inf")),
        ("1_000", "1_000"),
        ("22:22", "22:22"),
        ("9" * 40, 1e40),
        ("1e999999", "1e999999"),
    ],
)
def test_plain_values_mean_what_yaml_1_2_says(text: str, value: object) -> None:
    assert atom(text) == value
