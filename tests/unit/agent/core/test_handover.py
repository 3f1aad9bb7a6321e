"""What the secrets that came for an execution become."""

from dataclasses import replace

import pytest

from agent.core.containers.secrets import uid_of, with_files, with_variables
from agent.core.containers.spec import Body
from agent.core.launching.handover import directory_name, handover, login, without_clashes
from muster.domain.fleet.secret import DeliveredSecret, Handover, SecretKind
from muster.domain.gangs.plan import Launch
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.image import whole_name
from muster.domain.jobs.job import Role
from muster.domain.jobs.secret_use import SecretUse

S3 = DeliveredSecret(
    name="store",
    kind=SecretKind.S3,
    values={"access-key-id": b"AKIA0", "secret-access-key": b"swordfish", "region": b"eu-north-1"},
)
PASSWD = b"root:x:0:0:root:/:/bin/sh\napp:x:1000:100:app:/:/bin/sh\nbroken\n"


def using(*uses: SecretUse) -> Role:
    return Role(secrets=uses)


def refusal(role: Role, *delivered: DeliveredSecret) -> str:
    with pytest.raises(ExecutionError) as caught:
        handover(role, delivered)
    assert caught.value.kind is FailureKind.INVALID_OPTION
    return str(caught.value)


def test_keys_become_variables_and_files_and_what_is_no_secret_stays_readable() -> None:
    use = SecretUse(secret="store", env={"AWS_SECRET_ACCESS_KEY": "secret-access-key"}, directory="/run/store")
    assert handover(using(use), [S3]) == Handover(
        env={"AWS_SECRET_ACCESS_KEY": b"swordfish"}, files={"/run/store": S3.values}, masked=(b"AKIA0", b"swordfish")
    )


def test_credentials_that_no_use_names_are_not_handed_over() -> None:
    registry = DeliveredSecret(name="ghcr", kind=SecretKind.REGISTRY, values={"password": b"x"})
    assert handover(using(SecretUse(secret="store", env={"KEY": "access-key-id"})), [S3, registry]).files == {}


def test_a_secret_or_key_that_is_missing_is_named() -> None:
    assert refusal(using(SecretUse(secret="wandb")), S3) == "secrets: the coordinator sent no secret wandb"
    assert refusal(using(SecretUse(secret="store", env={"X": "token"})), S3).endswith(
        "store has no key 'token' (any more)"
    )


def test_a_value_with_a_zero_byte_can_be_no_variable() -> None:
    secret = DeliveredSecret(name="k", kind=SecretKind.GENERIC, values={"key": b"a\0b"})
    assert "zero byte" in refusal(using(SecretUse(secret="k", env={"X": "key"})), secret)


@pytest.mark.parametrize(
    "directory",
    ["/", "/muster", "/proc/x", "/muster/config", "relative", "/a/../../etc", "//proc/x", "/./proc", "/a//b"],
)
def test_a_directory_that_containers_need_for_something_else_is_refused(directory: str) -> None:
    assert "is not free for secrets" in refusal(using(SecretUse(secret="store", directory=directory)), S3)


def test_no_value_is_in_the_text_of_a_handover_or_a_launch() -> None:
    found = handover(using(SecretUse(secret="store", env={"X": "secret-access-key"}, directory="/x")), [S3])
    assert "swordfish" not in f"{found} {Launch(env={}, secrets=found)} {S3}"


def test_secrets_outweigh_the_job_file_but_not_who_an_execution_is() -> None:
    secrets = Handover(env={"TOKEN": b"1", "RANK": b"2", "OWN": b"3"})
    launch = Launch(env={"TOKEN": "of the job file", "RANK": "0"})
    assert without_clashes(secrets, Role(env={"TOKEN": "of the job file"}), launch).env == {"TOKEN": b"1", "OWN": b"3"}


def test_directories_keep_their_names_only_at_the_usual_place() -> None:
    assert [directory_name(path, 7) for path in ("/muster/secrets/db", "/run/db", "/muster/secrets/a/b")] == [
        "db",
        "@7",
        "@7",
    ]


def test_of_several_credentials_those_for_the_longest_path_are_taken() -> None:
    def credentials(server: str) -> DeliveredSecret:
        values = {"server": server.encode(), "username": server.encode(), "password": b"p\n"}
        return DeliveredSecret(name="r", kind=SecretKind.REGISTRY, values=values)

    known = [credentials(server) for server in ("ghcr.io", "ghcr.io/team", "ghcr.io/other", "docker.io")]
    found = {image: login(image, known) for image in ("ghcr.io/team/app:1", "ghcr.io/x", "busybox", "quay.io/x")}
    assert {image: it and it.username for image, it in found.items()} == {
        "ghcr.io/team/app:1": "ghcr.io/team",
        "ghcr.io/x": "ghcr.io",
        "busybox": "docker.io",
        "quay.io/x": None,
    }
    assert "p\n" not in str(found["ghcr.io/x"])
    assert login("store/x", [S3]) is None


@pytest.mark.parametrize(
    ("image", "whole"),
    [
        ("busybox", "docker.io/library/busybox"),
        ("team/app:1", "docker.io/team/app:1"),
        ("localhost/app", "localhost/app"),
        ("10.0.0.1:5000/app@sha256:00", "10.0.0.1:5000/app@sha256:00"),
    ],
)
def test_a_pull_with_credentials_names_the_registry(image: str, whole: str) -> None:
    assert whole_name(image) == whole


@pytest.mark.parametrize(
    ("user", "uid"), [("", 0), ("0", 0), ("1000:5", 1000), ("app", 1000), ("app:root", 1000), ("nobody-knows", None)]
)
def test_the_user_of_a_container_is_found_by_number_or_in_its_image(user: str, uid: int | None) -> None:
    assert uid_of(user, PASSWD) == uid


def test_user_code_stands_behind_the_program_that_adds_variables() -> None:
    body: Body = {"Image": "i", "Entrypoint": ["sh"], "HostConfig": {"Mounts": [{"Target": "/a"}]}}
    asked = with_variables(with_files(body, {}), "variables", ("sh", "-c", "x"), ("/bin/sh", "/usr/bin/sh"))
    assert asked == {
        **body,
        "Entrypoint": ["/muster-secret-env"],
        "Cmd": ["/muster/secret-env/variables", "2", "/bin/sh", "/usr/bin/sh", "sh", "-c", "x"],
    }


def test_a_use_without_anything_adds_nothing() -> None:
    assert not handover(using(SecretUse(secret="store")), [S3])
    assert not replace(Handover(), masked=(b"x",))
