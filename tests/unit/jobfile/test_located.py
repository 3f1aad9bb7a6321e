"""What a coordinator refuses is told by the keys and lines of the file that the user wrote."""

from typing import Any

import pytest

from muster.jobfile import JobFileError, job_from, load_job, refused_in_file, refused_in_values

PLAIN = """\
name: a
command: x
secrets:
  - wandb
  - {secret: store, env: {KEY: access_key}}
"""
ROLES = """\
name: a
secrets: [wandb]
roles:
  - {name: b, command: x}
  - {name: c, command: x, secrets: [store]}
"""
SEVERAL = """\
name: a
command: x
inputs:
  short:
    - https://example.org/a
    - gs://acme/a
  whole: {url: [https://example.org/a, "https://example.org/b/a"]}
"""
MISSING = "project default has no secret"


def told(text: str, message: str, **more: Any) -> list[str]:
    found = refused_in_file(message, "job.yaml", text, **more)
    return [] if found is None else str(found).splitlines()


@pytest.mark.parametrize(
    ("text", "path", "place"),
    [
        (PLAIN, "roles[0].secrets[0].secret", "job.yaml:4:5: secrets[0]"),
        (PLAIN, "roles[0].secrets[1].secret", "job.yaml:5:14: secrets[1].secret"),
        (PLAIN, "roles[0].secrets[1].env", "job.yaml:5:21: secrets[1].env"),
        (PLAIN, "name", "job.yaml:1:7: name"),
        (ROLES, "roles[0].secrets[0].secret", "job.yaml:2:11: secrets[0]"),
        (ROLES, "roles[1].secrets[0].secret", "job.yaml:5:37: roles[1].secrets[0]"),
    ],
)
def test_a_refusal_has_the_line_where_the_user_wrote_it(text: str, path: str, place: str) -> None:
    first, excerpt, caret = told(text, f"{path}: {MISSING}")

    assert first.startswith(place)
    assert first.endswith(f": {MISSING}")
    line, column = map(int, place.split(":")[1:3])
    assert excerpt.strip() == text.splitlines()[line - 1].strip()
    assert caret.index("^") == column + 3


def test_every_line_of_a_refusal_is_placed_and_the_rest_stays() -> None:
    message = f"roles[0].secrets[0].secret: {MISSING}\nand 3 more"

    assert [line for line in told(PLAIN, message) if line.startswith("job.yaml")] == [
        "job.yaml: and 3 more",
        f"job.yaml:4:5: secrets[0].secret: {MISSING}",
    ]


def test_a_refusal_that_names_no_key_is_left_as_it_is() -> None:
    assert told(PLAIN, "the queue is full: try again") == []
    assert told(PLAIN, "mounts of project vision: none") == []


def test_the_job_of_a_file_with_several_is_meant_that_was_refused() -> None:
    text = f"name: z\ncommand: x\n---\n{PLAIN}"

    assert told(text, f"roles[0].secrets[0].secret: {MISSING}", number=1)[0].startswith("job.yaml:7:5: secrets[0]")


def test_a_job_from_options_has_the_keys_of_a_job_without_roles() -> None:
    document = {"name": "a", "command": ["x"], "secrets": [{"secret": "wandb"}]}

    assert str(refused_in_values(f"roles[0].secrets[0].secret: {MISSING}", "muster run", document)) == (
        f"muster run: secrets[0].secret: {MISSING}"
    )


def test_a_wrong_url_of_several_has_its_own_line() -> None:
    with pytest.raises(JobFileError) as no:
        load_job(SEVERAL, "job.yaml")
    assert [(each.line, each.column, each.field) for each in no.value.problems] == [
        (6, 7, "inputs.short.url[1]"),
        (7, 40, "inputs.whole.url[1]"),
    ]
    with pytest.raises(JobFileError, match=r"inputs\.a\.url: is an empty list; name one URL or more"):
        job_from({"name": "a", "command": "x", "inputs": {"a": []}}, "muster run")
