"""Job files, the wire and the SDK give the same verdict on every job, and the same sentence for what is wrong."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster import wire
from muster.domain.errors import InvalidJobError
from muster.domain.fault import spell
from muster.domain.jobs.job import (
    InlineFile,
    JobSpec,
    PortRequest,
)
from muster.domain.jobs.placeholders import ALONE
from muster.domain.jobs.restart import ExitCodes, ExitRules
from muster.domain.jobs.rules.job_rules import faults, refuse_faults
from muster.jobfile import JobFileError, dump_job, job_from
from tests.unit.jobfile.valid_jobs import any_job
from tests.unit.jobfile.wrong_checkpoints import WRONG_CHECKPOINTS
from tests.unit.jobfile.wrong_code import WRONG_CODE
from tests.unit.jobfile.wrong_inputs import WRONG_INPUTS
from tests.unit.jobfile.wrong_jobs import REFUSED, job, role
from tests.unit.jobfile.wrong_outputs import WRONG_OUTPUTS
from tests.unit.jobfile.wrong_volumes import WRONG_VOLUMES

Damage = Callable[[JobSpec], JobSpec]


def from_a_file(spec: JobSpec) -> list[str]:
    try:
        job_from(dump_job(spec), "job")
    except JobFileError as error:
        return [problem.message for problem in error.problems]
    return []


def over_the_wire(spec: JobSpec) -> str:
    try:
        refuse_faults(wire.job_spec_from_wire(wire.job_spec_to_wire(spec)))
    except InvalidJobError as error:
        return str(error)
    return ""


def from_the_sdk(spec: JobSpec) -> str:
    try:
        refuse_faults(spec)
    except InvalidJobError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [*REFUSED, *WRONG_CHECKPOINTS, *WRONG_CODE, *WRONG_INPUTS, *WRONG_OUTPUTS, *WRONG_VOLUMES],
    ids=[
        sentence[:60]
        for _, sentence in (*REFUSED, *WRONG_CHECKPOINTS, *WRONG_CODE, *WRONG_INPUTS, *WRONG_OUTPUTS, *WRONG_VOLUMES)
    ],
)
def test_every_door_refuses_a_wrong_job_with_the_same_sentence(spec: JobSpec, sentence: str) -> None:
    [fault] = faults(spec)

    assert str(fault).startswith(sentence)
    assert over_the_wire(spec) == from_the_sdk(spec) == str(fault)
    assert from_a_file(spec) == [fault.message]


@settings(max_examples=30)
@given(any_job)
def test_every_door_takes_a_valid_job(spec: JobSpec) -> None:
    assert (from_a_file(spec), over_the_wire(spec), from_the_sdk(spec)) == ([], "", "")


WRONG_BY_ITSELF: Sequence[Damage] = (
    lambda spec: replace(spec, name=spec.name.upper() + "_"),
    lambda spec: replace(spec, priority=2000),
    lambda spec: replace(spec, project="-"),
    lambda spec: replace(spec, timeouts=replace(spec.timeouts, check_in=timedelta(days=400))),
    lambda spec: replace(spec, restarts=replace(spec.restarts, infrastructure=1001)),
    lambda spec: _last(spec, count=0),
    lambda spec: _last(spec, workdir="x/../y"),
    lambda spec: _last(spec, env={**spec.roles[-1].env, "MUSTER_X": "1"}),
    lambda spec: _last(spec, resources=replace(spec.roles[-1].resources, gpus=65)),
    lambda spec: _last(spec, ports=(*spec.roles[-1].ports, PortRequest(name="A"))),
    lambda spec: _last(spec, files=(*spec.roles[-1].files, InlineFile(path="/muster/x", content=b""))),
)


def _last(spec: JobSpec, **changes: Any) -> JobSpec:
    return replace(spec, roles=(*spec.roles[:-1], replace(spec.roles[-1], **changes)))


@settings(max_examples=50)
@given(any_job, st.sampled_from(WRONG_BY_ITSELF))
def test_any_job_with_one_fault_is_refused_for_it_at_every_door(spec: JobSpec, damage: Damage) -> None:
    wrong = damage(spec)
    [fault] = faults(wrong)

    assert from_a_file(wrong) == [fault.message]
    assert over_the_wire(wrong) == from_the_sdk(wrong) == str(fault)


def test_a_command_written_as_one_text_is_refused_and_not_run_letter_by_letter() -> None:
    wrong = role(command="echo hi")

    assert [str(fault) for fault in faults(wrong)] == ["roles[0].command: must be a list of words, not one text"]


def test_a_word_that_is_no_dialect_is_refused_with_the_one_that_was_meant() -> None:
    [fault] = faults(job(dialects=("slrum",)))
    assert str(fault) == 'dialects[0]: must be slurm, valohai, runai or skypilot, not "slrum"; did you mean "slurm"?'
    [line] = from_a_file(job(dialects=("slrum",)))
    assert line == fault.message


@pytest.mark.parametrize(
    "text",
    [
        *(f"{{{{muster:{name}}}}}" for name in ALONE),
        "{{muster:address:worker-0}} {{muster:host:worker-0}} {{muster:port:worker-0:master}}",
        "${HOME} {{rank}} {{ muster:nothing }} {{muster:}",
    ],
)
def test_placeholders_that_every_execution_has_are_taken_and_other_braces_are_text(text: str) -> None:
    assert list(faults(role(expand=True, command=("a", text), env={"A": text}))) == []


def test_without_expand_every_text_is_taken() -> None:
    assert list(faults(role(command=("a", "{{muster:nothing}}")))) == []


def test_a_value_that_is_no_text_is_refused_with_its_name() -> None:
    assert from_the_sdk(role(env={"A": 1})) == "roles[0].env.A: must be text, not 1"


def test_of_very_many_faults_the_first_are_told() -> None:
    told = from_the_sdk(role(env={f"MUSTER_{number}": "" for number in range(25)}))

    assert len(told.splitlines()) == 11
    assert told.endswith("and 15 more")


def test_paths_are_spelled_as_people_write_them() -> None:
    assert spell(("roles", 0, "env", "A B")) == 'roles[0].env["A B"]'


def test_exit_codes_that_no_program_has_are_refused() -> None:
    wrong = role(exit_codes=ExitRules(fail=ExitCodes(((1, 256),))))

    assert from_the_sdk(wrong) == 'roles[0].exit_codes.fail: must lie in 1-255, smaller number first, not "1-256"'
