"""What callers may do with secrets."""

import pytest

from coordinator.service.secrets import SecretOperations
from muster.domain.errors import ConflictError, InvalidJobError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.fleet.secret import SecretKind
from tests.unit.coordinator.service.callers import Trusted, of_all, person, secrets_in_memory
from tests.unit.coordinator.trust.memory_trust import PROJECTS

OPERATOR = person(red=Access.OPERATOR)


def operations(trusted: Trusted) -> SecretOperations:
    return SecretOperations(trusted.operations, secrets_in_memory(PROJECTS))


async def test_what_is_set_is_listed_without_its_values() -> None:
    secrets = operations(Trusted())

    await secrets.set(OPERATOR, "red", "db", {"user": b"u", "password": b"p"})
    (listed,) = await secrets.list(OPERATOR, "red")

    assert (listed.project, listed.name, listed.keys, listed.updated_by) == ("red", "db", ("password", "user"), "ada")


async def test_nothing_is_replaced_unless_that_is_asked_for() -> None:
    secrets = operations(Trusted())
    await secrets.set(OPERATOR, "red", "db", {"user": b"u"})

    with pytest.raises(ConflictError, match="has a secret 'db' already"):
        await secrets.set(OPERATOR, "red", "db", {"user": b"v"})
    await secrets.set(OPERATOR, "red", "db", {"other": b"v"}, replace=True)

    assert [each.keys for each in await secrets.list(OPERATOR, "red")] == [("other",)]


async def test_credentials_name_the_server_that_they_are_for() -> None:
    values = {"server": b"ghcr.io\n".strip(), "username": b"u", "password": b"p"}

    secret = await operations(Trusted()).set(OPERATOR, "red", "r", values, kind=SecretKind.REGISTRY)

    assert secret.server == "ghcr.io"


async def test_what_is_refused_is_written_down_with_project_and_name() -> None:
    trusted = Trusted()
    secrets = operations(trusted)

    with pytest.raises(InvalidJobError):
        await secrets.set(of_all(Access.ADMIN), "", "bad", {"a b": b"v"})
    with pytest.raises(UnknownNameError):
        await secrets.remove(of_all(Access.ADMIN), "red", "db")

    assert await trusted.told() == [
        ("root", "secrets.set", "default/bad", "invalid_argument"),
        ("root", "secrets.remove", "red/db", "not_found"),
    ]


async def test_a_look_at_names_of_secrets_is_written_down() -> None:
    trusted = Trusted()

    await operations(trusted).list(person(red=Access.MEMBER), "red")

    assert await trusted.told() == [("ada", "secrets.list", "red", "ok")]
