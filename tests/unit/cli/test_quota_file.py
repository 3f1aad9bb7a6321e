"""What people write of quotas: pairs, and a file; and what a change is told as."""

from datetime import timedelta

import pytest

from muster.domain.errors import InvalidJobError
from muster.domain.fleet.quota import (
    NO_QUOTA_TERMS,
    UNLIMITED_AMOUNT,
    AmountBounds,
    QuotaTerms,
    QuotaUnit,
    UnitChange,
    UnitKind,
    UnitTerms,
)
from muster.domain.fleet.quota_plan import planned, told
from muster.domain.jobs.job_class import JobClass
from muster.quota_file import changed_terms, units_of


def test_pairs_say_what_a_unit_may_have_and_leave_the_rest() -> None:
    before = QuotaTerms(weight=3, rank=1)

    pairs = ["gpus=16", "limit=32", "memory=1Ti", "limit.cpus=unlimited", "weight=2", "class=spare"]
    after = changed_terms(before, pairs)

    assert after == QuotaTerms(
        quota=AmountBounds(gpus=16_000, memory=1024 * 1024),
        limit=AmountBounds(gpus=32_000, cpus=UNLIMITED_AMOUNT),
        weight=2,
        rank=1,
        job_class=JobClass.SPARE,
    )


def test_none_takes_back_what_was_said() -> None:
    before = QuotaTerms(weight=3, quota=AmountBounds(gpus=1))

    assert changed_terms(before, ["weight=none", "gpus=none"]) == NO_QUOTA_TERMS


@pytest.mark.parametrize("none", ["0", "0s"])
def test_jobs_may_be_safe_for_no_time_at_all(none: str) -> None:
    assert changed_terms(NO_QUOTA_TERMS, [f"min_runtime={none}"]) == QuotaTerms(min_runtime=timedelta())


@pytest.mark.parametrize(("said", "limit"), [("4h", timedelta(hours=4)), ("0", timedelta())])
def test_jobs_that_nobody_uses_may_be_stopped_after_a_time_or_never(said: str, limit: timedelta) -> None:
    assert changed_terms(NO_QUOTA_TERMS, [f"idle={said}"]) == QuotaTerms(idle=limit)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("gpus", "'gpus' is not KEY=VALUE, like gpus=16"),
        ("gpu=1", "gpu=1: there is no key 'gpu'; there are quota.gpus"),
        ("gpus=two", "gpus=two: must be a whole number, not 'two'"),
        ("class=gold", "class=gold: must be guaranteed, preemptible, spare, not 'gold'"),
        ("memory=1000", "memory=1000: must be whole mebibytes, not '1000'"),
        ("idle=soon", "idle=soon: must be a duration"),
        ("min_runtime=soon", "min_runtime=soon: must be a duration"),
    ],
)
def test_a_pair_that_means_nothing_is_told(pair: str, message: str) -> None:
    with pytest.raises(InvalidJobError) as told_why:
        changed_terms(NO_QUOTA_TERMS, [pair])

    assert str(told_why.value).startswith(message)


def test_types_of_nodes_are_a_list_in_a_file_and_words_with_commas_in_a_pair() -> None:
    wanted = QuotaTerms(types=("t4", "v100"))
    (unit,) = units_of({"projects": {"students": {"types": ["t4", "v100"]}}}, ())

    assert changed_terms(NO_QUOTA_TERMS, ["types=t4, v100"]) == unit.terms.everywhere == wanted
    change = UnitChange(before=QuotaUnit(name="students", kind=UnitKind.PROJECT), after=unit)
    assert list(told(change)) == ["students: types not set -> t4, v100"]


FILE = {
    "departments": {"research": {"quota": {"gpus": "64"}}},
    "projects": {
        "vision": {
            "department": "research",
            "quota": {"gpus": "16"},
            "weight": "2",
            "pools": {"h100": {"quota": {"gpus": "8"}}},
        },
        "speech": None,
    },
}


def test_a_file_says_all_of_what_its_units_may_have() -> None:
    known = [QuotaUnit(name="speech", kind=UnitKind.PROJECT, department="sales")]

    research, vision, speech = units_of(FILE, known)

    assert (research.kind, research.terms.everywhere) == (
        UnitKind.DEPARTMENT,
        QuotaTerms(quota=AmountBounds(gpus=64_000)),
    )
    assert vision == QuotaUnit(
        name="vision",
        kind=UnitKind.PROJECT,
        department="research",
        terms=UnitTerms(
            everywhere=QuotaTerms(quota=AmountBounds(gpus=16_000), weight=2),
            pools={"h100": QuotaTerms(quota=AmountBounds(gpus=8000))},
        ),
    )
    assert speech.department == "sales", "what the file does not say of departments stays"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "the file must be a map of names"),
        ({"users": {}}, "the file has the unknown key 'users'; there are departments, projects"),
        ({"projects": {"a": {"quota": "16"}}}, "projects.a.quota must be a map, like {gpus: 16}"),
        ({"projects": {"a": {"quota": {"gpu": "16"}}}}, "projects.a.quota.gpu: there is no key 'quota.gpu'"),
        ({"projects": {"a": {"weight": "5000"}}}, "projects.a: weight must be from 0 to 1000, not 5000"),
        (
            {"projects": {"a": {"pools": {"p": {"max_running": "1"}}}}},
            "projects.a: pool p: max_running holds in all",
        ),
    ],
)
def test_a_fault_of_a_file_is_told_with_its_place(document: object, message: str) -> None:
    with pytest.raises(InvalidJobError) as told_why:
        units_of(document, ())

    assert str(told_why.value).startswith(message)


def test_only_what_differs_is_changed_and_told() -> None:
    vision = QuotaUnit(name="vision", kind=UnitKind.PROJECT, terms=UnitTerms(everywhere=QuotaTerms(weight=1)))
    speech = QuotaUnit(name="speech", kind=UnitKind.PROJECT)
    wanted = units_of({"projects": {"vision": {"weight": "2", "pools": {"h100": {"rank": "1"}}}, "speech": {}}}, ())

    changes = planned((vision, speech), wanted)

    assert [change.name for change in changes] == ["vision"]
    assert list(told(changes[0])) == ["vision: weight 1 -> 2", "vision: rank in pool h100 not set -> 1"]


def test_new_and_removed_units_are_told() -> None:
    unit = QuotaUnit(name="research", kind=UnitKind.DEPARTMENT)

    assert list(told(UnitChange(before=None, after=unit))) == ["department research: new"]
    assert list(told(UnitChange(before=unit, after=None))) == ["department research: removed"]
