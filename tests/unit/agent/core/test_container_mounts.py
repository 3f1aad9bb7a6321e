"""What of a node containers may see: mounts below the directories that its operator has named."""

from pathlib import PurePosixPath

import pytest

from agent.core.containers.spec import checked_mount
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import Mount


def test_a_mount_below_an_allowed_directory_has_its_source_resolved() -> None:
    mount = Mount(source="/data/link", target="/in//put/", read_only=False)
    roots = (PurePosixPath("/mnt"), PurePosixPath("/srv"))
    assert checked_mount(mount, PurePosixPath("/srv/set"), roots) == Mount(
        source="/srv/set", target="/in/put", read_only=False
    )


@pytest.mark.parametrize("source", ["/etc", "/srvother", "/"])
def test_a_mount_from_elsewhere_is_refused_with_the_name_of_the_setting(source: str) -> None:
    with pytest.raises(ExecutionError, match="mount_roots: /srv") as caught:
        checked_mount(Mount(source=source, target="/in"), PurePosixPath(source), (PurePosixPath("/srv"),))
    assert caught.value.kind is FailureKind.INVALID_OPTION


@pytest.mark.parametrize("source", ["/srv", "/srv/agent", "/srv/agent/trust", "/srv/run/docker.sock"])
def test_what_only_agent_and_engine_may_see_is_not_mounted(source: str) -> None:
    private = (PurePosixPath("/srv/agent"), PurePosixPath("/srv/run/docker.sock"))
    with pytest.raises(ExecutionError, match="only the agent, the engine or the node itself may see") as caught:
        checked_mount(Mount(source=source, target="/in"), PurePosixPath(source), (PurePosixPath("/srv"),), private)
    assert caught.value.kind is FailureKind.INVALID_OPTION


@pytest.mark.parametrize(
    "target", ["/", "in", "/muster", "/muster/config/x", "/proc", "/dev/shm", "/in/../sys", "//proc", "//"]
)
def test_a_mount_over_what_the_container_needs_is_refused(target: str) -> None:
    with pytest.raises(ExecutionError):
        checked_mount(Mount(source="/srv", target=target), PurePosixPath("/srv"), (PurePosixPath("/srv"),))
