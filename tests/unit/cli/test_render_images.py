"""How images of nodes look, and what has become of those that were to go."""

from muster.cli.commands.data.images_table import FATES, fates_table, images_table, pull_table
from muster.domain.data.kept.image import ClearOutcome, ImageFate, ImageView
from muster.domain.data.kept.pull import NodePull, PullStep, PullView
from muster.domain.quantity import moment_text
from tests.unit.cli.values import at, shown

ID = f"sha256:{'4e1d0c35a0f7' * 5}abcd"


def image(*names: str, size: int = 0, connected: bool = True) -> ImageView:
    return ImageView(node="a", id=ID, names=names, bytes=size, used_at=at(0), connected=connected)


def test_an_image_is_shown_by_its_name_with_a_tag_or_else_by_the_beginning_of_its_digest() -> None:
    pinned = f"docker.io/team/app@{ID}"
    lines = shown(images_table([image(pinned, "team/app:1", size=2**30), image(pinned, connected=False)])).splitlines()

    used = moment_text(at(0))
    assert [line.split() for line in lines[1:]] == [
        ["a", "team/app:1", "(+1)", "4e1d0c35a0f7", "1", "GiB", *used.split(), "-"],
        ["a", "(away)", "docker.io/team/app@sha256:4e1d0c35a0f7", "4e1d0c35a0f7", "-", *used.split(), "-"],
    ]


def test_what_has_become_of_an_image_is_said_with_the_reason_of_the_engine() -> None:
    fate = ImageFate(image="team/app:1", outcome=ClearOutcome.FAILED, why="no space")

    assert "stays, as the engine did not remove it: no space" in shown(fates_table([fate]))
    assert set(FATES) == set(ClearOutcome)


def test_what_came_of_a_pull_is_said_by_node_with_the_digest_or_the_reason() -> None:
    there = NodePull(node="a", step=PullStep.PULLED, id="sha256:12", digest=ID, bytes=2**30)
    away = NodePull(node="b", step=PullStep.FAILED, why="no space")
    lines = shown(pull_table(PullView(id="pull-1", image="team/app:1", nodes=(there, away)))).splitlines()

    assert [line.split() for line in lines[1:]] == [
        ["a", "4e1d0c35a0f7", "1", "GiB", "pulled"],
        ["b", "-", "-", "failed:", "no", "space"],
    ]
