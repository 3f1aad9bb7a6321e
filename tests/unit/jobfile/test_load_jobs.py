"""Files with several documents, each of which describes a job."""

import pytest

from muster.jobfile import JobFileError, load_job, load_jobs

SWEEP = "# a sweep\nname: a\nenv: &env {A: x}\ncommand: &c [train]\n---\nname: b\ncommand: [train]\nenv: {B: y}\n"


def complaint(text: str, **overrides: str) -> str:
    with pytest.raises(JobFileError) as refusal:
        load_jobs(text, "sweep.yaml", overrides=overrides)
    return "\n".join(line for line in str(refusal.value).splitlines() if not line.startswith(" "))


def test_each_document_is_a_job_with_the_line_on_which_it_begins() -> None:
    found = load_jobs(SWEEP, "sweep.yaml", overrides={"workers": "2"})

    assert [(line, spec.name, spec.size, spec.roles[0].env) for line, spec in found] == [
        (2, "a", 2, {"A": "x"}),
        (6, "b", 2, {"B": "y"}),
    ]


def test_a_file_with_one_job_is_read_as_before_and_empty_documents_are_nothing() -> None:
    text = "name: a\ncommand: [train]\n"

    assert load_jobs(text, "job.yaml") == ((1, load_job(text, "job.yaml")),)
    assert load_jobs(f"---\n---\n{text}---\n# nothing\n", "job.yaml") == ((3, load_job(text, "job.yaml")),)


def test_all_problems_of_all_documents_are_told_and_those_of_overrides_once() -> None:
    text = "name: a\ncommand: [train]\nname: c\n---\n- b\n---\nname: d\nimages: x\ncommand: [train]\n"

    assert complaint(text, **{"command.x": "1"}).splitlines() == [
        'sweep.yaml: command.x: there is no "x" in a list',
        "sweep.yaml:3:1: name: stands here a second time; the first is on line 1",
        "sweep.yaml:5:1: must be a map with keys such as name and command, not a list",
        'sweep.yaml:8:1: images: unknown key; did you mean "image"?',
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1:1: is empty; a job needs a name, and a command or an image"),
        ("---\n---\n", "1:1: is empty; a job needs a name, and a command or an image"),
        (
            "name: &n a\n---\nname: *n\n",
            "3:7: the alias *n refers to nothing above it; a text that begins with * must stand in quotes",
        ),
        ("name: a\n---\nname: [b\n", "3:7: is not valid YAML: the list that begins here with [ lacks a comma or its ]"),
        ("name: a\n---\n%YAML 1.1\n---\nname: b\n", None),
    ],
)
def test_what_is_no_document_is_told_with_its_place(text: str, problem: str | None) -> None:
    assert complaint(text).startswith("sweep.yaml:" + (problem or ""))


def test_documents_share_the_limits_of_a_file() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"

    assert "holds more than 50000 values, counting what aliases repeat" in complaint("---\n".join([bomb] * 1000))
