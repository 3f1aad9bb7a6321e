"""Which registry serves an image, and which credentials are for it."""

import pytest

from muster.domain.jobs.image import is_image, is_server, registry_of, serves


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("busybox", "docker.io"),
        ("busybox:1.36", "docker.io"),
        ("pytorch/pytorch:2.9", "docker.io"),
        ("index.docker.io/library/busybox", "docker.io"),
        ("ghcr.io/team/train@sha256:00", "ghcr.io"),
        ("localhost/train", "localhost"),
        ("registry:5000/train:1", "registry:5000"),
        ("registry.example.org:443/train", "registry.example.org"),
        ("[fd00::1]:5000/train", "[fd00::1]:5000"),
    ],
)
def test_the_registry_of_an_image_is_in_its_name(image: str, registry: str) -> None:
    assert registry_of(image) == registry


@pytest.mark.parametrize(
    ("server", "image", "meant"),
    [
        ("docker.io", "busybox", True),
        ("https://index.docker.io/v1/", "pytorch/pytorch", True),
        ("ghcr.io", "busybox", False),
        ("GHCR.io/", "ghcr.io/team/train", True),
        ("https://ghcr.io", "ghcr.io/team/train", True),
        ("ghcr.io/team", "ghcr.io/team/train:1", True),
        ("ghcr.io/team", "ghcr.io/team-b/train", False),
        ("ghcr.io/team/train", "ghcr.io/team/train:1", True),
        ("registry:5000", "registry/train", False),
        ("example.org", "registry.example.org/train", False),
        ("registry.example.org:443", "registry.example.org/train", True),
    ],
)
def test_credentials_are_for_the_images_of_their_server(server: str, image: str, *, meant: bool) -> None:
    assert serves(server, image) is meant


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("ghcr.io", True),
        ("https://registry.example.org:5000/v2/", True),
        ("registry:5000/team", True),
        ("[fd00::1]:5000", True),
        ("", False),
        ("https://", False),
        ("two words", False),
        ("user@host", False),
        ("ghcr.io\nHost: x", False),
    ],
)
def test_a_server_is_a_host_with_perhaps_a_port_or_a_path(text: str, *, fits: bool) -> None:
    assert is_server(text) is fits


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("busybox", True),
        ("ghcr.io/a/b_c-d.e:1.2@sha256:00ff", True),
        ("[fd00::1]:5000/train:1", True),
        ("sha256:00ff", True),
        ("", False),
        ("../containers/x", False),
        ("a/./b", False),
        ("a/../b", False),
        ("a//b", False),
        ("/a", False),
        ("a/", False),
        ("a?b", False),
        ("a#b", False),
        ("a%2fb", False),
        ("a b", False),
        ("a\n", False),
    ],
)
def test_the_name_of_an_image_leads_nowhere_else(name: str, *, fits: bool) -> None:
    assert is_image(name) is fits
