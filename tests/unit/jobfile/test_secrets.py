"""What a job file says of secrets: their names and where they go, never a value."""

import pytest

from muster.domain.jobs.secret_use import SecretUse
from muster.jobfile import JobFileError, load_job

HEAD = "name: a\nimage: b\nenv: {X: 1}\nmounts: ['/data:/data']\nsecrets:\n"


def uses(text: str, head: str = HEAD) -> tuple[SecretUse, ...]:
    return load_job(f"{head}  - {text}", "job.yaml").roles[0].secrets


def problem(text: str, head: str = HEAD) -> str:
    with pytest.raises(JobFileError) as refused:
        uses(text, head)
    (found,) = refused.value.problems
    return str(found)


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("wandb", SecretUse(secret="wandb", directory="/muster/secrets/wandb")),
        ("{secret: wandb}", SecretUse(secret="wandb", directory="/muster/secrets/wandb")),
        ("{secret: wandb, directory: /run/w/}", SecretUse(secret="wandb", directory="/run/w")),
        ("{secret: wandb, env: KEY}", SecretUse(secret="wandb", env={"KEY": ""})),
        ("{secret: s3, env: true}", SecretUse(secret="s3", standard_env=True)),
        (
            "{secret: s3, env: {A: access-key-id}, directory: /muster/secrets/s3}",
            SecretUse(secret="s3", env={"A": "access-key-id"}, directory="/muster/secrets/s3"),
        ),
    ],
)
def test_every_way_to_ask_for_a_secret_is_understood(text: str, use: SecretUse) -> None:
    assert uses(text) == (use,)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{secret: A}", 'secrets[0].secret: must be 1 to 63 lower-case letters, digits and hyphens, with no hyphen at the ends, not "A"; did you mean "a"?'),  # noqa: E501 - one sentence
        ("a\n  - a", 'secrets[1].secret: "a" is the secret of secrets[0], too'),
        ("{secret: a, env: Y}\n  - {secret: b, env: {Y: k}}", 'secrets[1].env: "Y" is the variable of secrets[0], too'),
        ("{secret: a, env: RANK}", "secrets[0].env: is set by Muster for every execution; remove it, or use another name"),  # noqa: E501 - the sentence in one piece
        ("{secret: a, env: {X: k}}", "secrets[0]: sets X, which env sets, too"),
        ("{secret: a, env: {Y: a/b}}", 'secrets[0].env: takes for Y a key of the secret: letters, digits and ._-, not "a/b"'),  # noqa: E501 - the sentence in one piece
        ("{secret: a, directory: /muster/config}", 'secrets[0].directory: "/muster/config" is in /muster, which Muster fills itself'),  # noqa: E501 - the sentence in one piece
        ("{secret: a, directory: /data/x}", "secrets[0]: lies at /data/x, which the mount at /data covers"),
        ("{secret: a, directory: /}", "secrets[0].directory: cannot be the whole container; name a directory below /"),
        ("{secret: a, directory: /dev/shm/a}", 'secrets[0].directory: "/dev/shm/a" is the system\'s own; name another directory'),  # noqa: E501 - the sentence in one piece
        ("{secret: a, value: hunter2}", "secrets[0].value: unknown key"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_where_it_stands(text: str, sentence: str) -> None:
    assert problem(text) == sentence


def test_a_plain_process_has_its_files_where_muster_puts_them() -> None:
    head = "name: a\ncommand: x\nsecrets:\n"
    assert uses("{secret: a, directory: /muster/secrets/a}", head) == uses("a", head)
    assert "a plain process finds it by MUSTER_SECRETS_DIR" in problem("{secret: a, directory: /run/a}", head)


def test_a_role_says_for_itself_which_secrets_it_has() -> None:
    spec = load_job(
        "name: a\ncommand: x\nsecrets: [s]\nroles: [{name: b}, {name: c, secrets: [t, u]}, {name: d, secrets: []}]", "f"
    )
    assert [[use.secret for use in role.secrets] for role in spec.roles] == [["s"], ["t", "u"], []]


def test_more_secrets_than_a_role_may_have_are_refused() -> None:
    assert problem("s0\n" + "".join(f"  - s{n}\n" for n in range(1, 33))) == "secrets: has 33 secrets; 32 are the most"
