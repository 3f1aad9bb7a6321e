"""Values that replace those of the file, and jobs given as values."""

import pytest

from muster.domain.jobs.job import Network, PortRequest, Resources, Role
from muster.jobfile import JobFileError, job_from, load_job

TEXT = "name: a\ncommand: x\nroles: [{name: b}, {name: c, count: 3}]\n"


def complaint(text: str, overrides: dict[str, object]) -> str:
    with pytest.raises(JobFileError) as refusal:
        load_job(text, "job.yaml", overrides=overrides)
    return str(refusal.value)


def test_text_is_read_as_if_it_stood_in_the_file() -> None:
    overrides = {
        "workers": "4",
        "resources.gpus": "2",
        "env.LR": "0.10",
        "env.NO": "no",
        "ports": "[{name: a, port: 5}]",
    }
    assert load_job("name: a\ncommand: x\nresources: {gpus: 1, cpus: 4}", "job.yaml", overrides=overrides).roles == (
        Role(
            count=4,
            command=("/bin/sh", "-c", "x"),
            env={"LR": "0.10", "NO": "no"},
            resources=Resources(gpus=2, cpu_millis=4000),
            ports=(PortRequest(name="a", port=5),),
        ),
    )


def test_other_values_are_taken_as_they_are() -> None:
    spec = load_job("name: a\nimage: b", "job.yaml", overrides={"workers": 2, "network": Network.BRIDGE})
    assert (spec.size, spec.network) == (2, Network.BRIDGE)


def test_an_empty_text_is_an_empty_text() -> None:
    assert load_job("name: a\ncommand: x", "job.yaml", overrides={"env.A": ""}).roles[0].env == {"A": ""}


@pytest.mark.parametrize("key", ["roles.1.count", "roles[1].count"])
def test_a_place_in_a_list_is_a_number(key: str) -> None:
    spec = load_job(TEXT, "job.yaml", overrides={key: "5"})
    assert [role.count for role in spec.roles] == [1, 5]


def test_null_takes_a_key_away() -> None:
    text = "name: a\nimage: b\ncommand: x\nresources: {gpus: 1}\n"
    overrides = {"image": "null", "resources.gpus": None, "env": "null", "timeouts.run": "~"}
    assert load_job(text, "job.yaml", overrides=overrides) == load_job("name: a\ncommand: x\n", "job.yaml")


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({"workers": "four"}, 'workers: must be a whole number, not "four"'),
        ({"workrs": "4"}, 'workrs: unknown key; did you mean "workers"?'),
        ({"env": "{A"}, "env: is not valid YAML: the map that begins here with { lacks a comma or its }"),
        ({"env": "{A: 1, A: 2}"}, 'env: has the key "A" twice'),
        ({"name.first": "b"}, 'name.first: there is no "first" in "a"'),
        ({"roles[].count": "1"}, '["roles[]"]: unknown key; did you mean "roles"?'),
        ({"a..b": "1"}, "a..b: is not a key such as resources.gpus or roles[0].count"),
        ({"workers": object()}, "workers: cannot hold a value of type object"),
    ],
)
def test_a_wrong_override_is_told_without_a_line(overrides: dict[str, object], problem: str) -> None:
    assert complaint("name: a\ncommand: x\n", overrides) == f"job.yaml: {problem}"


def test_a_place_beyond_the_list_is_refused() -> None:
    assert complaint(TEXT, {"roles.2.count": "5"}) == 'job.yaml: roles.2.count: there is no "2" in a list'


def test_problems_of_overrides_come_before_those_of_the_file() -> None:
    assert complaint("name: a\ncommand: x\nworkers: 0", {"priority": "high"}) == (
        'job.yaml: priority: must be a whole number, not "high"\n'
        "job.yaml:3:10: workers: must be at least 1, not 0\n"
        "    workers: 0\n"
        "             ^"
    )


def test_a_job_from_values_has_the_same_checks() -> None:
    with pytest.raises(JobFileError) as refusal:
        job_from({"name": "a", "command": ("x",), "env": {"A": None}, "resources": {"memory": "1Gx"}}, "muster run")
    assert str(refusal.value) == (
        'muster run: env.A: has no value; give one, or remove the key (an empty text is "")\n'
        'muster run: resources.memory: has the unknown unit "Gx"; there are k, M, G, T, P, Ki, Mi, Gi, Ti, Pi'
    )


def test_a_job_from_values_takes_numbers_and_truth_values() -> None:
    spec = job_from({"name": "a", "command": ["x", 1, True], "resources": {"cpus": 0.1}}, "values")
    assert spec.roles[0].command == ("x", "1", "true")
    assert spec.roles[0].resources.cpu_millis == 100


def test_half_a_character_in_a_value_is_refused() -> None:
    with pytest.raises(JobFileError, match="values: holds half a character"):
        job_from({"name": "a", "command": ["\ud800"]}, "values")
