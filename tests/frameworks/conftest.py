"""Machines for frameworks that take an address for a machine, as MPI does: each with its own network and host name."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.deployment import Deployment, deployed
from tests.e2e.fleet import lacking, open_fleet
from tests.frameworks.environments import interpreter

NODE_OPTIONS = ("--processes", "--job-user", "none")
"""Options of an agent; the frameworks lie below a home directory, which another user could not read."""


@pytest.fixture(scope="module", autouse=True)
def environments(request: pytest.FixtureRequest) -> None:
    """Have the ENVIRONMENT_NAMES of a module made before its tests, whose limit in time is shorter than pip takes."""
    for name in getattr(request.module, "ENVIRONMENT_NAMES", ()):
        interpreter(name)


@pytest.fixture(scope="module")
def machines() -> Iterator[Deployment]:
    """A coordinator with two nodes that run plain processes and containers."""
    if reason := lacking():
        pytest.skip(reason)
    with (
        open_fleet(2) as fleet,
        tempfile.TemporaryDirectory(dir=fleet.directory) as directory,
        deployed(fleet, Path(directory)) as deployment,
    ):
        for node in fleet.nodes:
            deployment.start_agent(node, *NODE_OPTIONS)
        deployment.await_nodes(2)
        yield deployment
