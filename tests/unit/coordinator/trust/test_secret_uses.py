"""What roles say of secrets, spelled out when a job is accepted."""

from datetime import UTC, datetime

import pytest

from coordinator.trust.secrets.uses import spelled_out
from muster.domain.data.checkpoint import JobCheckpoint
from muster.domain.data.code import GitCode, JobCode
from muster.domain.data.job_input import JobInput
from muster.domain.data.output_terms import OutputTerms
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.secret import Secret, SecretKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.secret_use import SecretUse

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def secret(name: str, kind: SecretKind, *keys: str, server: str = "") -> Secret:
    return Secret(
        project="vision",
        name=name,
        kind=kind,
        keys=tuple(sorted(keys)),
        created_at=NOW,
        updated_at=NOW,
        updated_by="ada",
        server=server,
    )


KNOWN = {
    each.name: each
    for each in (
        secret("one", SecretKind.GENERIC, "key"),
        secret("two", SecretKind.GENERIC, "KEY_A", "KEY_B"),
        secret("dotted", SecretKind.GENERIC, "a.b"),
        secret("s3", SecretKind.S3, "access-key-id", "secret-access-key", "region"),
        secret("gh", SecretKind.GIT, "server", "username", "token", server="github.com"),
        secret("lab", SecretKind.GIT, "server", "username", "token", server="http://lab:3000"),
        secret("ssh", SecretKind.GIT, "ssh-key", "known-hosts"),
        secret("web", SecretKind.HTTP, "server", "token", server="data.example.org"),
        secret("blobs", SecretKind.AZURE, "account", "key"),
        secret("hub", SecretKind.REGISTRY, "server", "username", "password", server="docker.io"),
    )
}


def role(*uses: SecretUse, **env: str) -> Role:
    spec = JobSpec(name="a", roles=(Role(command=("x",), env=env, secrets=uses),), project="vision")
    return spelled_out(spec, KNOWN).roles[0]


def problems(*uses: SecretUse, **env: str) -> list[str]:
    with pytest.raises(InvalidJobError) as refused:
        role(*uses, **env)
    return str(refused.value).splitlines()


def test_a_job_without_secrets_stays_as_it_is() -> None:
    spec = JobSpec(name="a", roles=(Role(command=("x",)),))
    assert spelled_out(spec, {}) is spec


def test_who_says_nothing_else_gets_files_in_the_usual_directory() -> None:
    assert role(SecretUse(secret="two")).secrets == (SecretUse(secret="two", directory="/muster/secrets/two"),)


def test_a_variable_alone_holds_the_only_value_that_there_is() -> None:
    assert role(SecretUse(secret="one", env={"A": ""})).secrets == (SecretUse(secret="one", env={"A": "key"}),)
    assert problems(SecretUse(secret="two", env={"A": ""})) == [
        "roles[0].secrets[0].env: secret 'two' has the keys KEY_A, KEY_B; say which one, as a map of VARIABLE: key"
    ]


def test_the_usual_variables_of_s3_are_those_whose_keys_are_there() -> None:
    (use,) = role(SecretUse(secret="s3", standard_env=True)).secrets
    assert use == SecretUse(
        secret="s3",
        env={
            "AWS_ACCESS_KEY_ID": "access-key-id",
            "AWS_SECRET_ACCESS_KEY": "secret-access-key",
            "AWS_DEFAULT_REGION": "region",
            "AWS_REGION": "region",
        },
    )


def test_the_usual_variables_of_a_generic_secret_are_its_keys() -> None:
    (use,) = role(SecretUse(secret="two", standard_env=True)).secrets
    assert use == SecretUse(secret="two", env={"KEY_A": "KEY_A", "KEY_B": "KEY_B"})
    assert problems(SecretUse(secret="dotted", standard_env=True)) == [
        (
            "roles[0].secrets[0].env: secret 'dotted' of kind generic has no usual variables; name them, as a map of "
            "VARIABLE: key"
        )
    ]


def test_git_reads_the_files_of_each_server() -> None:
    got = role(
        SecretUse(secret="gh", standard_env=True), SecretUse(secret="lab", standard_env=True, directory="/run/my lab")
    )
    assert {name: value for name, value in got.env.items() if "VALUE" not in name} == {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "credential.https://github.com.helper",
        "GIT_CONFIG_KEY_1": "credential.http://lab:3000.helper",
        "GIT_TERMINAL_PROMPT": "0",
    }
    assert '"$(cat "${MUSTER_SECRETS_DIR:-/muster/secrets}"/gh/token)"' in got.env["GIT_CONFIG_VALUE_0"]
    assert "\"$(cat '/run/my lab'/token)\"" in got.env["GIT_CONFIG_VALUE_1"]
    assert got.secrets == (
        SecretUse(secret="gh", directory="/muster/secrets/gh"),
        SecretUse(secret="lab", directory="/run/my lab"),
    )


def test_git_over_ssh_uses_the_key_and_the_hosts_that_are_known() -> None:
    path = '"${MUSTER_SECRETS_DIR:-/muster/secrets}"/ssh'
    assert role(SecretUse(secret="ssh", standard_env=True)).env == {
        "GIT_SSH_COMMAND": f"ssh -i {path}/ssh-key -o IdentitiesOnly=yes -o BatchMode=yes "
        f"-o UserKnownHostsFile={path}/known-hosts"
    }


def test_everything_that_is_wrong_is_said_at_once() -> None:
    uses = (
        SecretUse(secret="nosuch"),
        SecretUse(secret="one", env={"A": "kee", "B": "key"}),
        SecretUse(secret="two", env={"B": "KEY_A"}),
        SecretUse(secret="hub", standard_env=True),
    )
    assert problems(*uses, A="1") == [
        (
            "roles[0].secrets[0].secret: project vision has no secret 'nosuch'; `muster secrets list --project vision` "
            "shows those that it has"
        ),
        "roles[0].secrets[1].env: secret 'one' has the keys key, no 'kee'",
        (
            "roles[0].secrets[3].env: secret 'hub' of kind registry has no usual variables; name them, as a map of "
            "VARIABLE: key"
        ),
        "roles[0].secrets: the variable A is there twice",
        "roles[0].secrets: the variable B is there twice",
    ]


def test_a_secret_or_a_directory_twice_is_refused() -> None:
    uses = (SecretUse(secret="one", directory="/run/a"), SecretUse(secret="one", directory="/run/a/"))
    assert problems(*uses) == [
        "roles[0].secrets: the secret one is there twice",
        "roles[0].secrets: the directory /run/a is there twice",
    ]


def test_who_configures_git_himself_and_asks_for_it_is_told() -> None:
    assert problems(SecretUse(secret="gh", standard_env=True), GIT_CONFIG_COUNT="1") == [
        "roles[0].secrets: the variable GIT_CONFIG_COUNT is there twice"
    ]


def test_more_secrets_than_a_role_may_have_are_refused() -> None:
    assert problems(*[SecretUse(secret="one")] * 33) == ["roles[0].secrets: has 33; 32 are the most"]


def test_what_opens_a_store_must_be_there_and_be_for_stores() -> None:
    def submitted(*names: str) -> JobSpec:
        inputs = tuple(JobInput(name=f"i-{name}", url="s3://acme/a", secret=name) for name in names)
        spec = JobSpec(name="j", project="vision", roles=(Role(command=("x",), inputs=inputs),))
        return spelled_out(spec, KNOWN)

    assert submitted("s3").roles[0].inputs[0].secret == "s3"
    saves = Role(command=("x",), checkpoint=JobCheckpoint(to="az://acme", secret="one"))
    with pytest.raises(InvalidJobError, match=r"roles\[0\]\.checkpoint\.secret: the secret 'one' is of kind generic"):
        spelled_out(JobSpec(name="j", project="vision", roles=(saves,)), KNOWN)
    leaves = Role(command=("x",), outputs=OutputTerms(to="s3://acme", secret="one"))
    with pytest.raises(InvalidJobError, match=r"roles\[0\]\.outputs\.secret: the secret 'one' is of kind generic"):
        spelled_out(JobSpec(name="j", project="vision", roles=(leaves,)), KNOWN)
    with pytest.raises(InvalidJobError) as refused:
        submitted("nosuch", "hub")
    first, second = str(refused.value).splitlines()
    assert first.startswith("roles[0].inputs.i-nosuch.secret: project vision has no secret 'nosuch'; `muster secrets ")
    assert second == "roles[0].inputs.i-hub.secret: the secret 'hub' is of kind registry; s3:// needs one of kind s3"


@pytest.mark.parametrize(
    ("url", "name", "problem"),
    [
        ("https://data.example.org/a", "web", ""),
        ("https://DATA.example.org:443/a", "web", ""),
        (
            "http://data.example.org/a",
            "web",
            "the secret 'web' is for data.example.org, and is not shown to http://data",
        ),
        ("https://data.example.org:8443/a", "web", "is not shown to https://data.example.org:8443"),
        ("https://data.example.org.evil.org/a", "web", "is not shown to https://data.example.org.evil.org"),
        ("https://data.example.org/a", "s3", "the secret 's3' is of kind s3; https:// needs one of kind http"),
        ("az://acme/a", "blobs", ""),
        ("az://acme/a", "s3", "the secret 's3' is of kind s3; az:// needs one of kind azure"),
        ("s3://acme/a", "blobs", "the secret 'blobs' is of kind azure; s3:// needs one of kind s3"),
        ("s3://acme/a", "web", "the secret 'web' is of kind http; s3:// needs one of kind s3"),
    ],
)
def test_a_secret_opens_files_of_its_own_server_alone(url: str, name: str, problem: str) -> None:
    files = (JobInput(name="a", url=url, secret=name),)
    spec = JobSpec(name="j", project="vision", roles=(Role(command=("x",), inputs=files),))
    if not problem:
        assert spelled_out(spec, KNOWN) == spec
        return
    with pytest.raises(InvalidJobError, match=r"^roles\[0\]\.inputs\.a\.secret: ") as refused:
        spelled_out(spec, KNOWN)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("url", "name", "problem"),
    [
        ("https://github.com/team/train.git", "gh", ""),
        ("ssh://git@github.com/team/train.git", "ssh", ""),
        ("https://github.com/team/train.git", "gone", "project vision has no secret 'gone'"),
        ("https://github.com/team/train.git", "s3", "the secret 's3' is of kind s3; code from git needs one of git"),
        ("https://github.com/team/train.git", "ssh", "https:// needs server, username and token"),
        ("ssh://git@github.com/team/train.git", "gh", "ssh:// needs ssh-key and known-hosts"),
        (
            "https://evil.example.org/team/train.git",
            "gh",
            "the secret 'gh' is for github.com, and is not shown to evil",
        ),
        (
            "https://github.com:8443/team/train.git",
            "gh",
            "the secret 'gh' is for github.com, and is not shown to github",
        ),
    ],
)
def test_a_secret_opens_repositories_of_its_own_server_alone(url: str, name: str, problem: str) -> None:
    code = JobCode(git=GitCode(url=url, secret=name))
    spec = JobSpec(name="a", roles=(Role(command=("x",), code=code),), project="vision")
    if not problem:
        assert spelled_out(spec, KNOWN) == spec
        return
    with pytest.raises(InvalidJobError, match=r"^roles\[0\]\.code\.secret: ") as refused:
        spelled_out(spec, KNOWN)
    assert problem in str(refused.value)
