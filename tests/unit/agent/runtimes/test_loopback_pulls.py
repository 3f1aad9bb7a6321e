"""Which images an engine pulls through its node, and by which names the agent knows them then, from values alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.launching.handover import RegistryLogin
from agent.data.layers.messages import ImageSource
from agent.runtimes.docker.answers import About
from agent.runtimes.docker.images.loopback import digest_name, wanted_through
from agent.runtimes.docker.images.pulled import PulledImages
from agent.runtimes.docker.images.pulling import PullTerms

ONE, TWO = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
LOGIN = RegistryLogin(username="puller", password="of the team")
ABOUT = About(
    version="29.0.0",
    podman=False,
    architecture="x86_64",
    cpus=1,
    init=True,
    live_restore=False,
    nvidia=False,
    root=Path("/"),
)


async def nobody(image: str) -> RegistryLogin | None:
    del image
    return None


def terms(about: About = ABOUT) -> PullTerms:
    return PullTerms(login=nobody, about=about)


def test_the_mover_is_told_where_an_image_comes_from_and_what_its_registry_is_shown() -> None:
    wanted = wanted_through(f"r.example.org:5000/team/app:1@{ONE}", terms(), LOGIN)
    assert wanted is not None
    shown = ImageSource(host="r.example.org:5000", path="team/app", username="puller", password="of the team")
    assert (wanted.source, wanted.reference, wanted.architecture, wanted.project) == (shown, ONE, "amd64", None)


def test_an_image_of_docker_hub_without_a_login_is_everybodys() -> None:
    wanted = wanted_through("busybox", terms(), None)
    assert wanted is not None
    assert (wanted.source, wanted.reference) == (ImageSource(host="docker.io", path="library/busybox"), "latest")
    assert wanted.project == ""


@pytest.mark.parametrize(
    ("image", "about"),
    [
        ("team/app:1", replace(ABOUT, podman=True)),
        ("r.example.org/team/app:1", replace(ABOUT, proxied=True)),
        ("team/app:1", replace(ABOUT, mirrored=True)),
        ("[::1]:5000/team/app:1", ABOUT),
        ("r.example.org/Team/app:1", ABOUT),
    ],
)
def test_an_engine_with_ways_of_its_own_pulls_directly(image: str, about: About) -> None:
    assert wanted_through(image, terms(about), None) is None


def test_a_mirror_is_for_docker_hub_alone() -> None:
    assert wanted_through("r.example.org/team/app:1", terms(replace(ABOUT, mirrored=True)), None) is not None


def test_an_image_is_known_by_the_digests_under_which_it_was_pulled() -> None:
    pulled = PulledImages(None)
    pulled.note("id-1", f"docker.io/team/app@{ONE}", "team/app:1")
    pulled.note("id-2", digest_name(f"team/app@{TWO}", TWO), f"team/app@{TWO}")
    assert (pulled.id_of(f"team/app@{ONE}"), pulled.id_of(f"team/app@{TWO}")) == ("id-1", "id-2")
    assert pulled.id_of(f"elsewhere/app@{ONE}") is None
    assert pulled.digests_of("id-2") == (f"team/app@{TWO}",)
    assert digest_name(f"team/app@{TWO}", TWO) == f"docker.io/team/app:digest-{'2' * 64}"
