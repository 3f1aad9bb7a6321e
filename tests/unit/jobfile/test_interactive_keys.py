"""Interactive jobs in job files: what they need not say, and what is filled in."""

from dataclasses import replace
from datetime import timedelta

import pytest

from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.interactive import NEVER_IDLE, Interactive
from muster.domain.jobs.job import JobSpec, Role, Timeouts
from muster.domain.jobs.rules.filling_in import filled_in
from muster.domain.jobs.rules.job_rules import faults
from muster.jobfile import JobFileError, dump_job, load_job

PROCESS = JobSpec(name="dev", roles=(Role(),), interactive=Interactive(setup="true"))
CONTAINER = replace(PROCESS, roles=(Role(image="torch:2"),))
RAY = replace(PROCESS, framework=Framework(name=FrameworkName.RAY))


@pytest.mark.parametrize("spec", [PROCESS, CONTAINER, RAY])
def test_an_interactive_job_needs_no_command_and_no_image(spec: JobSpec) -> None:
    assert list(faults(spec)) == []


def test_an_interactive_job_is_stopped_after_two_hours_without_use_unless_it_says_otherwise() -> None:
    def limit(spec: JobSpec, idle: timedelta | None) -> timedelta | None:
        return filled_in(replace(spec, timeouts=Timeouts(idle=idle))).idle_limit

    other = replace(PROCESS, interactive=None)
    assert limit(PROCESS, None) == timedelta(hours=2)
    assert limit(PROCESS, NEVER_IDLE) is None
    assert limit(other, None) is None
    assert limit(other, timedelta(minutes=1)) == timedelta(minutes=1)


def test_a_terminal_is_read_from() -> None:
    assert filled_in(replace(PROCESS, tty=True)).stdin


@pytest.mark.parametrize(
    ("written", "interactive", "idle"),
    [
        ("interactive: true", Interactive(), timedelta(hours=2)),
        ("interactive: {}", Interactive(), timedelta(hours=2)),
        ("interactive: {setup: jupyter lab &}", Interactive(setup="jupyter lab &"), timedelta(hours=2)),
        ("interactive: true\ntimeouts: {idle: none}", Interactive(), NEVER_IDLE),
        ("interactive: true\ntimeouts: {idle: 90m}", Interactive(), timedelta(minutes=90)),
        ("interactive: false\ncommand: serve", None, None),
        ("timeouts: {idle: 10s}\ncommand: serve", None, timedelta(seconds=10)),
    ],
)
def test_it_is_written_in_short_or_as_a_map(
    written: str, interactive: Interactive | None, idle: timedelta | None
) -> None:
    spec = load_job(f"name: dev\n{written}", "job.yaml")
    assert (spec.interactive, spec.timeouts.idle) == (interactive, idle)
    dumped = dump_job(spec)
    assert (dumped.get("interactive", False) is not False) == (interactive is not None)


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("interactive: yes please", '2:14: interactive: must be true, false or a map, not "yes please"'),
        ("interactive: {set_up: x}", '2:15: interactive.set_up: unknown key; did you mean "setup"?'),
        ("interactive: true\ntimeouts: {idle: 5s}", "3:18: timeouts.idle: is 5s; the least is 10s"),
        ("interactive: false", "command: is missing: without an image there is nothing to run"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(written: str, sentence: str) -> None:
    with pytest.raises(JobFileError) as caught:
        load_job(f"name: dev\n{written}", "job.yaml")
    assert sentence in str(caught.value)
