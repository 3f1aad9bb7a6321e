"""What an agent notes of the images that it has pulled, and which of them may go."""

from pathlib import Path

import pytest

from agent.runtimes.docker.images.pulled import IMAGE_UNUSED, PulledImage, PulledImages, is_meant, may_go

NOW = 1_700_000_000.0


def image(id_: str, unused_for: float) -> PulledImage:
    return PulledImage(id=id_, names=(f"team/{id_}:1",), used_at=NOW - unused_for)


def test_the_longest_unused_goes_first_and_what_is_in_use_or_was_used_of_late_stays() -> None:
    old, older, used = image("old", IMAGE_UNUSED), image("older", 2 * IMAGE_UNUSED), image("used", 9 * IMAGE_UNUSED)
    fresh = image("fresh", IMAGE_UNUSED - 1)
    assert list(may_go([old, fresh, used, older], {"used", "elsewhere"}, NOW)) == [older, old]


def test_the_note_outlives_the_agent(tmp_path: Path) -> None:
    path, clock = tmp_path / "images.json", iter(range(10))
    noted = PulledImages(path, lambda: float(next(clock)))
    noted.note("one", "team/app@sha256:1", size=7)
    noted.note("two", "team/two:1")
    noted.note("one", "team/app:1", "team/app@sha256:1")
    noted.note_use("two", "of-somebody-else")
    noted.note("gone", "team/gone:1")
    noted.forget("gone")
    assert PulledImages(path).all() == (
        PulledImage(id="one", names=("team/app@sha256:1", "team/app:1"), used_at=2, bytes=7),
        PulledImage(id="two", names=("team/two:1",), used_at=3),
    )
    assert noted.revision == 6, "whoever tells of them looks again"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "{", "[1]", '[{"id": "a"}]', '[{"id": "a", "names": 1, "used_at": 0}]'])
def test_a_damaged_note_is_as_if_nothing_had_been_pulled(tmp_path: Path, content: str) -> None:
    path = tmp_path / "images.json"
    path.write_text(content)
    assert PulledImages(path).all() == ()


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("busybox", True),
        ("docker.io/library/busybox:latest", True),
        ("busybox:1", False),
        ("library/busybox", True),
        ("team/busybox", False),
        ("busybox@sha256:beef", True),
        ("sha256:0123456789abcdef", True),
        ("0123456789ab", True),
        ("0123456789a", False),
        ("f123456789ab", False),
        ("sha256:", False),
    ],
)
def test_an_image_is_meant_by_each_of_its_names_and_by_the_beginning_of_its_id(wanted: str, meant: bool) -> None:
    names = ("busybox", "docker.io/library/busybox@sha256:beef")
    image = PulledImage(id="sha256:0123456789abcdef", names=names, used_at=NOW)
    assert is_meant(image, wanted) is meant
