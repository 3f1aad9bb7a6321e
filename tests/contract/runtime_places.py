"""Every kind of place in which the contract of runtimes must hold."""

from pathlib import Path

import pytest

from agent.runtimes.kernel.rights import may_switch
from tests.contract.docker_place import DockerPlace
from tests.contract.runtimes import Place, ProcessPlace, ProcessPlaceOfOthers

needs_other_users = pytest.mark.skipif(not may_switch(), reason="only an agent with root's rights may switch users")

PLACES = [
    pytest.param(ProcessPlace, id="process"),
    pytest.param(ProcessPlaceOfOthers, id="process of another user", marks=needs_other_users),
    pytest.param(DockerPlace, id="docker", marks=pytest.mark.docker),
]


def place_of(request: pytest.FixtureRequest, directory: Path) -> Place:
    """The place of a test that has these as its parameters."""
    if request.param is DockerPlace:
        return DockerPlace(directory, request.getfixturevalue("docker_socket"))
    made: Place = request.param(directory)
    return made
