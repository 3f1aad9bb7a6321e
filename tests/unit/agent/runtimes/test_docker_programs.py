"""What is looked for in containers, and what is known of their images already."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agent.runtimes.docker.answers import ContainerProgram
from agent.runtimes.docker.engine.connection import EngineConnection
from agent.runtimes.docker.engine.files import EngineFiles
from agent.runtimes.docker.programs import ContainerPrograms, Sought
from muster.domain.jobs.failure import ExecutionError, FailureKind

BINARY = b"\x7fELF"
DIRECTORIES = ("/usr", "/usr/bin", "/data", "/opt")


@dataclass(frozen=True, slots=True)
class Link:
    """A link that leads to the program in the end."""

    target: str


class EngineWithFiles(EngineFiles):
    """An engine all of whose containers have the same files; it notes which are asked for."""

    def __init__(self, files: Mapping[str, bytes | Link]) -> None:
        super().__init__(EngineConnection(Path("/nowhere")))
        self.files = dict(files)
        self.asked: list[str] = []

    async def program(self, container: str, path: str) -> ContainerProgram | None:
        del container
        self.asked.append(path)
        directory = path in DIRECTORIES
        if not directory and path not in self.files:
            return None
        file = self.files.get(path)
        link = file.target if isinstance(file, Link) else None
        return ContainerProgram(directory=directory and link is None, executable=True, link=link)

    async def beginning(self, container: str, path: str, length: int) -> bytes:
        del container
        self.asked.append(f"{path}, {length} bytes")
        file = self.files[path]
        assert isinstance(file, bytes)
        return file


@dataclass
class Node:
    """An engine, and what is known of its images."""

    engine: EngineWithFiles
    programs: ContainerPrograms = field(init=False)

    def __post_init__(self) -> None:
        self.programs = ContainerPrograms(self.engine)

    async def asked_for(self, sought: Sought) -> list[str]:
        """What the engine is asked when a container has to have a program."""
        self.engine.asked = []
        await self.programs.check("container", sought)
        return self.engine.asked


TRAIN = Sought(
    name="train",
    places=("/opt/train", "/usr/bin/train"),
    search="/opt:/usr/bin",
    image="team/app",
    image_id="sha256:1",
    mounts=frozenset(),
    files=frozenset(),
    own=frozenset({"/muster/config"}),
)


def with_mounts(*places: str) -> Sought:
    return replace(TRAIN, mounts=frozenset(places))


def with_files(*places: str) -> Sought:
    return replace(TRAIN, files=frozenset(places))


async def test_what_an_image_was_seen_to_have_is_not_looked_for_again() -> None:
    node = Node(EngineWithFiles({"/usr/bin/train": BINARY}))
    assert await node.asked_for(TRAIN) == ["/opt/train", "/usr/bin/train", "/usr/bin/train, 256 bytes"]
    assert await node.asked_for(TRAIN) == []


@pytest.mark.parametrize(
    "other",
    [
        replace(TRAIN, image_id="sha256:2"),
        replace(TRAIN, places=("/usr/bin/train",)),
        replace(TRAIN, own=frozenset({"/muster/config", "/muster/home"})),
    ],
)
async def test_another_image_or_other_places_are_looked_at(other: Sought) -> None:
    node = Node(EngineWithFiles({"/usr/bin/train": BINARY}))
    await node.asked_for(TRAIN)
    assert "/usr/bin/train, 256 bytes" in await node.asked_for(other)


@pytest.mark.parametrize("elsewhere", [with_mounts("/data", "/srv/notes"), with_files("/data/train.py", "/usr/bin/x")])
async def test_what_lies_elsewhere_makes_no_difference(elsewhere: Sought) -> None:
    node = Node(EngineWithFiles({"/usr/bin/train": BINARY}))
    await node.asked_for(elsewhere)
    assert await node.asked_for(elsewhere) == []


@pytest.mark.parametrize("place", ["/usr/bin/train", "/usr/bin", "/opt", "/opt/train"])
@pytest.mark.parametrize("covered", [with_mounts, with_files])
async def test_what_covers_a_place_is_looked_into_each_time(covered: Callable[[str], Sought], place: str) -> None:
    node = Node(EngineWithFiles({"/usr/bin/train": BINARY}))
    await node.asked_for(TRAIN)
    for _ in range(2):
        assert await node.asked_for(covered(place)) == ["/opt/train", "/usr/bin/train", "/usr/bin/train, 256 bytes"]


async def test_what_covers_the_interpreter_of_a_script_is_looked_into_each_time() -> None:
    node = Node(EngineWithFiles({"/opt/train": b"#!/usr/bin/python -u\n", "/usr/bin/python": BINARY}))
    looked = ["/opt/train", "/opt/train, 256 bytes", "/usr/bin/python"]
    assert await node.asked_for(TRAIN) == looked
    assert await node.asked_for(TRAIN) == []
    assert await node.asked_for(with_mounts("/usr/bin")) == looked


async def test_links_may_lead_through_a_mount() -> None:
    node = Node(EngineWithFiles({"/opt": Link("/data"), "/opt/train": BINARY}))
    await node.asked_for(TRAIN)
    for _ in range(2):
        assert "/opt/train, 256 bytes" in await node.asked_for(with_mounts("/data"))


async def test_a_mount_may_come_to_lie_elsewhere_by_a_link() -> None:
    node = Node(EngineWithFiles({"/usr/bin/train": BINARY, "/srv": Link("/usr/bin")}))
    await node.asked_for(TRAIN)
    for _ in range(2):
        assert "/usr/bin/train, 256 bytes" in await node.asked_for(with_mounts("/srv"))


async def test_what_was_seen_below_a_link_is_not_taken_for_the_image() -> None:
    """Where a mount comes to lie by a link, nothing else that was seen then says anything of the image."""
    node = Node(EngineWithFiles({"/usr/bin/train": BINARY, "/srv": Link("/opt")}))
    await node.asked_for(with_mounts("/srv", "/opt/more"))
    node.engine.files["/opt/more"] = Link("/usr/bin")
    for _ in range(2):
        assert "/usr/bin/train, 256 bytes" in await node.asked_for(with_mounts("/opt/more"))


async def test_a_file_may_come_to_lie_elsewhere_by_a_link() -> None:
    node = Node(EngineWithFiles({"/usr/bin/train": BINARY, "/srv": Link("/usr/bin")}))
    await node.asked_for(TRAIN)
    for _ in range(2):
        assert "/usr/bin/train, 256 bytes" in await node.asked_for(with_files("/srv/train"))


async def test_a_mount_within_another_may_lie_anywhere() -> None:
    node = Node(EngineWithFiles({"/usr/bin/train": BINARY}))
    await node.asked_for(TRAIN)
    for _ in range(2):
        assert "/usr/bin/train, 256 bytes" in await node.asked_for(with_mounts("/data", "/data/set"))


async def test_a_link_to_a_program_is_followed_and_not_read() -> None:
    node = Node(EngineWithFiles({"/opt/train": Link("/usr/bin/python3"), "/usr/bin/python3": BINARY}))
    assert await node.asked_for(TRAIN) == ["/opt/train", "/usr/bin/python3"]
    assert await node.asked_for(TRAIN) == []


async def test_what_is_missing_is_missed_each_time_and_found_once_it_is_there() -> None:
    node = Node(EngineWithFiles({}))
    for _ in range(2):
        with pytest.raises(ExecutionError, match='no program "train" in image team/app: looked in /opt:/usr/bin') as it:
            await node.programs.check("container", TRAIN)
        assert it.value.kind is FailureKind.COMMAND_NOT_FOUND
    node.engine.files["/opt/train"] = BINARY
    await node.programs.check("container", TRAIN)


async def test_a_program_that_a_mount_brings_is_not_taken_for_one_of_the_image() -> None:
    node = Node(EngineWithFiles({"/opt/train": BINARY}))
    await node.programs.check("container", with_mounts("/opt"))
    node.engine.files.clear()
    with pytest.raises(ExecutionError):
        await node.programs.check("container", TRAIN)
