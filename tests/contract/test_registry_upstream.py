"""How the mover of images asks registries: with a login or with a token, and with what it may not say to others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.data.layers.messages import ImageSource
from agent.data.layers.upstream import RegistryUpstream
from muster.transfer.web_file import FileDeniedError, FileRefusedError
from tests.image_registry import Registry, registry


@pytest.fixture
def images() -> Iterator[Registry]:
    with registry() as served:
        served.offer(b"one")
        served.login = ("puller", "of the team")
        yield served


def upstream(
    images: Registry, directory: Path, username: str = "puller", password: str = "of the team"
) -> RegistryUpstream:
    source = ImageSource(host=images.address, path="team/app", username=username, password=password)
    return RegistryUpstream(source, directory)


@pytest.mark.parametrize("token", ["", "t0ken"])
def test_a_registry_gives_manifests_and_blobs_to_whom_it_knows(images: Registry, tmp_path: Path, token: str) -> None:
    images.token = token
    asked = upstream(images, tmp_path)
    assert asked.manifest("1") == images.manifest
    layer, content = max(images.blobs.items(), key=lambda blob: len(blob[1]))
    with asked.blob(layer.removeprefix("sha256:"), 0, len(content)) as file:
        assert file.read() == content


@pytest.mark.parametrize("token", ["", "t0ken"])
@pytest.mark.parametrize(("username", "password"), [("puller", "wrong"), ("", "")])
def test_a_registry_lets_nobody_else_in(
    images: Registry, tmp_path: Path, token: str, username: str, password: str
) -> None:
    images.token = token
    with pytest.raises(FileDeniedError) as caught:
        upstream(images, tmp_path, username, password).manifest("1")
    assert "wrong" not in str(caught.value)


def test_a_token_that_is_over_is_asked_for_again(images: Registry, tmp_path: Path) -> None:
    images.token = "one"
    asked = upstream(images, tmp_path)
    asked.manifest("1")
    images.token = "two"
    assert asked.manifest("1") == images.manifest


@pytest.mark.parametrize("token", ["two words", "line\nX-Header: y", "é"])
def test_what_no_header_can_have_is_no_token(images: Registry, tmp_path: Path, token: str) -> None:
    images.token = token
    with pytest.raises(FileRefusedError, match="gives no token"):
        upstream(images, tmp_path).manifest("1")
