"""What several tests share: a provider that takes long to start, a place for secrets, a host for ssh."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.secrets.directories import NoMemoryDirectoryError, memory_directory
from tests.integration.identity_provider import PEOPLE, IdentityProvider, identity_provider
from tests.integration.ssh_hosts import SharedFleet, SshHost, shared_fleet, ssh_host


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


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedFleet]:
    """A fleet for all tests of a module."""
    with shared_fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


@pytest.fixture
def host(shared: SharedFleet, tmp_path: Path) -> Iterator[SshHost]:
    """An execution that `ssh` reaches."""
    with ssh_host(shared, tmp_path) as found:
        yield found


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory for an agent's secrets; at the end nothing may be left there but empty directories."""
    try:
        shared = memory_directory(None, os.environ)
    except NoMemoryDirectoryError as error:
        pytest.skip(str(error))
    shared.chmod(0o711)  # as agents leave it whose jobs run as another user
    directory = shared / tmp_path.name
    yield directory
    for path in (*directory.glob("*"), directory):
        path.rmdir()
