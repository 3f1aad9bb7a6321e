"""Whatever stands in a job file, it is a job or a list of problems with their places, and soon."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cli.output.documents import Format, text_of
from muster.domain.jobs.job import JobSpec
from muster.jobfile import FieldError, JobFileError, dump_job, job_from, load_job, load_jobs
from muster.wire import job_spec_from_wire, job_spec_to_wire
from tests.fuzz.effort import fuzzed
from tests.fuzz.harm import BOMBS, ODD, PIECES, changed, changed_values
from tests.fuzz.messages import seeds

T = TypeVar("T")

EXAMPLES = tuple(path.read_text() for path in sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml")))
LINE_ENDS = ("\n", "\r", "\x85", "\u2028", "\u2029")


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
restarts: {limit: 3, infrastructure: 10, backoff: 5s}
exit_codes: {restart: 1-255, fail: "2,137"}
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


@pytest.mark.parametrize("bomb", BOMBS)
@fuzzed
@given(name=st.just(""))
def test_a_file_that_is_meant_to_do_harm_is_judged_soon(bomb: str, name: str) -> None:
    """The limit in time is that of all tests here."""
    del name
    with suppress(JobFileError):
        load_job(BOMBS[bomb], "job.yaml")
