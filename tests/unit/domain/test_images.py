"""Which registry serves an image, and which credentials are for it."""

import pytest

from muster.domain.jobs.image import FoundImage, digest_in_registry, is_image, is_server, registry_of, serves, tag_of


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


ONE, TWO = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"


@pytest.mark.parametrize(
    ("image", "pinned", "tag"),
    [
        ("busybox", f"docker.io/library/busybox@{ONE}", "latest"),
        ("team/app:1.4", f"docker.io/team/app@{ONE}", "1.4"),
        ("registry:5000/team/app", f"registry:5000/team/app@{ONE}", "latest"),
        ("[fd00::1]:5000/app:a", f"[fd00::1]:5000/app@{ONE}", "a"),
    ],
)
def test_an_image_that_was_found_is_named_by_its_digest(image: str, pinned: str, tag: str) -> None:
    assert FoundImage(image=image, digest=ONE).pinned == pinned
    assert tag_of(image) == tag


@pytest.mark.parametrize(
    ("known_as", "digest"),
    [
        ((), ""),
        ((f"busybox@{ONE}",), ONE),
        ((f"docker.io/library/busybox@{ONE}",), ONE),
        ((f"registry.example.org/busybox@{TWO}", f"busybox@{ONE}"), ONE),
        ((f"registry.example.org/busybox@{TWO}",), ""),
        (("<none>@<none>", "busybox@sha256:12"), ""),
    ],
)
def test_only_its_own_registry_gives_an_image_a_digest(known_as: tuple[str, ...], digest: str) -> None:
    assert digest_in_registry("busybox:1", known_as) == digest
