"""Whatever stands in a job file, it is a job or a list of problems with their places, and soon."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cli.documents import Format, text_of
from muster.domain.job import JobSpec
from muster.spec import FieldError, JobFileError, dump_job, job_from, load_job, load_jobs
from muster.spec.document import MAX_BYTES
from muster.wire import job_spec_from_wire, job_spec_to_wire
from tests.fuzz.effort import fuzzed
from tests.fuzz.messages import TEXTS, seeds
from tests.fuzz.test_texts import changed

T = TypeVar("T")

EXAMPLES = tuple(path.read_text() for path in sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml")))
PIECES = (
    *("name", "command", "image", "workers", "roles", "env", "ports", "timeouts", "resources", "restarts", "files"),
    *("secrets", "security", "mounts", "ulimits", "network", "ring", "worker", "1", "3", "0x1F", "0o17", "1e9", ".inf"),
    *(
        "~",
        "null",
        "yes",
        "no",
        "true",
        "-1",
        "16Gi",
        "1h30m",
        "[a, b]",
        "{a: b}",
        "[",
        "]",
        "{",
        "}",
        "&a",
        "*a",
        "*b",
    ),
    *("<<", "!!str", "!!python/object:os.system", "!x", "|", ">", ">-", "|2", "#", "%YAML 1.1", "%YAML 9" + "9" * 50),
    *(
        "---",
        "...",
        "'",
        '"',
        "\\x",
        "\\U0010ffff",
        "\\UFFFFFFFF",
        "\ud800",
        "\0",
        "\t",
        "\ufeff",
        "\x85",
        "\u2028",
        "?",
    ),
    *("- ", ": ", "\n", "\n  ", "\n    ", "\n- ", " ", ",", "a" * 300, "9" * 400, "0x" + "f" * 400, "1" + ":59" * 40),
)
LINE_ENDS = ("\n", "\r", "\x85", "\u2028", "\u2029")
ODD = (None, True, False, 0, 1, -1, 2**70, 1.5, 1e308, float("nan"), float("inf"), "", *TEXTS, [], [1], {}, {"a": 1})


def scribbled(seed: int) -> str:
    """Pieces of YAML in any order."""
    chance = Random(seed)
    return "".join(chance.choice(PIECES) for _ in range(chance.randint(0, 60)))


def edited(seed: int) -> str:
    """A file that somebody has edited without looking."""
    chance = Random(seed)
    lines = chance.choice(EXAMPLES).split("\n")
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(lines))
        lines[at] = chance.choice(
            (
                "",
                lines[at] + chance.choice(PIECES),
                chance.choice(PIECES) + lines[at],
                " " * chance.randint(0, 8) + lines[at].lstrip(),
                lines[at].partition(":")[0] + ": " + chance.choice(PIECES),
                chance.choice(lines),
            )
        )
    text = "\n".join(lines)
    return changed(text.encode(errors="replace"), chance).decode(errors="replace") if chance.random() < 0.2 else text


def changed_values(value: Any, chance: Random) -> Any:  # noqa: ANN401 - plain values
    """Plain values with something else in some places."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        other = key if chance.random() < 0.9 else chance.choice(TEXTS)
        rest = {each: it for each, it in value.items() if each != key or chance.random() < 0.9}
        return {**rest, other: changed_values(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        return [*value[:at], changed_values(value[at], chance), *value[at + 1 :]]
    return chance.choice(ODD)


FULL = """
name: ring
project: vision
network: host
success: rank0
priority: 3
placement: pack
max_per_node: 1
node_labels: {pool: a100}
on_disconnect: stop
timeouts: {check_in: 5m, grace: 10s, run: 2h, lost_after: 90s}
restarts: {limit: 3, infrastructure: 10, backoff: 5s, restart_on: 1-255, fail_on: "2,137"}
env: {A: b}
resources: {gpus: 1, cpus: 2, memory: 16Gi, shm: 1Gi}
roles:
  - name: master
    count: 1
    image: registry.example.org/a:1
    command: [python, -c, pass]
    ports: [ring, {name: master, port: 29500}]
    mounts: [{source: /data, target: /in, read_only: true}]
    ulimits: {nofile: 1024, memlock: {soft: -1, hard: -1}}
    files: [{path: a.sh, content: echo, executable: true}]
  - name: worker
    count: 3
    image: registry.example.org/a:1
    command: [python]
    workdir: /work
    user: "1000:1000"
"""


def plain() -> dict[str, Any]:
    """The full job as plain values."""
    return dump_job(load_job(FULL, "job.yaml"))


def _judge(text: str) -> JobSpec | None:
    """The job, which says the same again when it is written and sent; or problems, each with its place."""
    found = _tried(lambda: load_job(text, "job.yaml"))
    if isinstance(found, JobSpec):
        _comes_back(found)
        assert [spec for _, spec in load_jobs(text, "job.yaml")] == [found]
        return found
    _has_places(found, text)
    return None


def _has_places(found: JobFileError, text: str) -> None:
    lines = 1 + sum(text.count(end) for end in LINE_ENDS)
    assert str(found)
    assert found.problems
    assert all(1 <= problem.line <= lines for problem in found.problems), str(found)


def _tried(read: Callable[[], T]) -> T | JobFileError:
    try:
        return read()
    except JobFileError as error:
        return error


def _comes_back(job: JobSpec) -> None:
    assert job_from(dump_job(job), "dump") == job
    assert load_job(text_of(dump_job(job), Format.YAML), "dump") == job
    assert job_spec_from_wire(job_spec_to_wire(job)) == job


def test_the_full_job_is_one() -> None:
    assert _judge(FULL) is not None
    assert len(EXAMPLES) >= 3


@fuzzed
@given(seed=seeds)
def test_pieces_of_yaml_in_any_order_are_a_job_or_problems_with_their_places(seed: int) -> None:
    _judge(scribbled(seed))


@fuzzed
@given(text=st.text(max_size=200))
def test_any_text_is_a_job_or_problems_with_their_places(text: str) -> None:
    _judge(text)
    _judge(f"name: x\ncommand: {text}")


@fuzzed
@given(seed=seeds)
def test_a_file_that_was_edited_blindly_is_a_job_or_problems_with_their_places(seed: int) -> None:
    _judge(edited(seed))


@fuzzed
@given(seed=seeds)
def test_several_documents_are_jobs_in_their_order_or_problems_with_their_places(seed: int) -> None:
    text = "\n---\n".join(edited(each) for each in (seed, seed // 2, seed // 3))
    found = _tried(lambda: load_jobs(text, "job.yaml"))
    if isinstance(found, JobFileError):
        _has_places(found, text)
    else:
        lines = [line for line, _ in found]
        assert lines == sorted(lines)
        for _, job in found:
            _comes_back(job)


@fuzzed
@given(seed=seeds)
def test_a_job_with_something_else_in_some_place_is_a_job_or_problems(seed: int) -> None:
    chance, values = Random(seed), plain()
    for _ in range(chance.randint(1, 4)):
        found = changed_values(values, chance)
        values = found if isinstance(found, dict) else values
    job = _tried(lambda: job_from(values, "values"))
    if isinstance(job, JobSpec):
        _comes_back(job)
    else:
        assert job.problems


@fuzzed
@given(seed=seeds, value=st.sampled_from(ODD))
def test_an_override_is_taken_or_is_a_problem(seed: int, value: object) -> None:
    chance = Random(seed)
    key = ".".join(
        chance.choice(("roles", "0", "1", "7", "-1", "env", "A", "count", "name", "x" * 300, "", "timeouts"))
        for _ in range(4)
    )
    with suppress(JobFileError, FieldError):
        load_job(FULL, "job.yaml", overrides={key: value, chance.choice(("workers", "resources.gpus", "env")): value})


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]\n"
    for n in range(1, 30)
)
BOMBS = {
    "aliases of aliases": LAUGHS,
    "an alias of itself": "a: &a [*a]",
    "nested lists": "[" * 20_000,
    "nested lists that end": "[" * 5_000 + "]" * 5_000,
    "nested maps": "{a: " * 20_000,
    "nested blocks": "".join("  " * n + "a:\n" for n in range(700)),
    "nested dashes": "- " * 50_000 + "x",
    "questions": "? " * 50_000 + "x",
    "nested anchors": "&a " * 50_000,
    "tags": "!a " * 50_000,
    "many keys": "".join(f"k{n}: 1\n" for n in range(60_000)),
    "one key very often": "a: 1\n" * 60_000,
    "a long number": "a: " + "9" * 900_000,
    "a long float": "a: 1." + "9" * 900_000 + "e99999",
    "an exponent": "priority: 1e99999",
    "a long word": "name: " + "a" * 900_000,
    "a long key": "a" * 900_000 + ": 1",
    "spaces": " " * 900_000,
    "line ends": "\n" * 900_000,
    "a comment": "#" * 900_000,
    "quotes": "a: '" + "''" * 400_000,
    "escapes": 'a: "' + "\\x41" * 200_000,
    "folded lines": "a: >\n" + "  x\n\n" * 150_000,
    "documents": "---\n" * 100_000,
    "directives": "%TAG ! x\n" * 50_000,
    "a range of exit codes": "name: a\ncommand: b\nrestarts: {limit: 1, fail_on: 0-" + "9" * 3000 + "}",
    "many exit codes": "name: a\ncommand: b\nrestarts: {limit: 1, fail_on: '" + "1-255," * 100_000 + "1'}",
    "a long duration": "name: a\ncommand: b\ntimeouts: {run: '" + "1h" * 400_000 + "'}",
    "a long size": "name: a\ncommand: b\nresources: {memory: '" + "1" * 400_000 + "Gi'}",
    "a long command": "name: a\ncommand: '" + "\\ '\"'\"'" * 50_000,
    "an open quote in a command": 'name: a\ncommand: "' + '\\" x ' * 100_000 + '"',
    "variables": "name: a\ncommand: '" + "${a" * 100_000 + "'",
    "more than is read": "a" * (MAX_BYTES + 1),
}


@pytest.mark.parametrize("bomb", BOMBS)
@fuzzed
@given(name=st.just(""))
def test_a_file_that_is_meant_to_do_harm_is_judged_soon(bomb: str, name: str) -> None:
    """The limit in time is that of all tests here."""
    del name
    with suppress(JobFileError):
        load_job(BOMBS[bomb], "job.yaml")
