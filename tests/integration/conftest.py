"""What several tests share because it takes long to start."""

from collections.abc import Iterator

import pytest

from tests.integration.identity_provider import PEOPLE, IdentityProvider, identity_provider


@pytest.fixture(scope="session")
def running_provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


@pytest.fixture
def provider(running_provider: IdentityProvider) -> IdentityProvider:
    """An identity provider that says of people what PEOPLE has."""
    for subject in PEOPLE:
        running_provider.change(subject)
    return running_provider
