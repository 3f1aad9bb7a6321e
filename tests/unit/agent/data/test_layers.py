"""Manifests of images, and the layers that a node keeps, from values alone."""

import json
import os
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.data.layers.files import PART_OF_LAYER_KEPT, LayerFiles, NoSpaceForLayersError, layers_go_first
from agent.data.layers.manifest import IMAGE_TYPES, INDEX_TYPES, ManifestError, read_manifest
from agent.data.layers.messages import ImageSource, PullWanted, wanted_heard, wanted_said
from muster.domain.data.tree import ContentObject

ONE, TWO, THREE = ("1" * 64, "2" * 64, "3" * 64)


def described(digest: str, size: object = 1, **more: object) -> dict[str, object]:
    return {"digest": f"sha256:{digest}", "size": size, **more}


def image(**changed: object) -> dict[str, object]:
    layers = [described(TWO, 2), described(TWO, 2), described(THREE, 3)]
    return {"schemaVersion": 2, "config": described(ONE), "layers": layers, **changed}


def index(*platforms: tuple[str, str, str]) -> dict[str, object]:
    images = [
        described(digest, platform={"os": system, "architecture": architecture})
        for digest, system, architecture in platforms
    ]
    return {"schemaVersion": 2, "manifests": images}


def read(said: object) -> Any:
    return read_manifest(json.dumps(said).encode())


@pytest.mark.parametrize("media_type", [None, *IMAGE_TYPES])
def test_the_blobs_of_an_image_are_its_configuration_and_each_layer_once(media_type: str | None) -> None:
    found = read(image(**({} if media_type is None else {"mediaType": media_type})))
    assert found.blobs == tuple(ContentObject(digest=each, size=n) for n, each in enumerate((ONE, TWO, THREE), 1))
    assert (found.media_type, found.is_index) == (media_type or IMAGE_TYPES[0], False)


def test_an_index_tells_the_image_for_a_processor() -> None:
    found = read(index((ONE, "windows", "amd64"), (TWO, "linux", "arm64"), (THREE, "linux", "amd64")))
    assert (found.media_type, found.is_index) == (INDEX_TYPES[0], True)
    assert found.image_for("amd64") == f"sha256:{THREE}"
    with pytest.raises(ManifestError, match="not there for riscv64"):
        found.image_for("riscv64")


@pytest.mark.parametrize(
    "said",
    [
        [],
        {},
        {"schemaVersion": 1, "fsLayers": []},
        image(schemaVersion=1),
        image(mediaType="text/html"),
        image(layers="none"),
        image(layers=[None]),
        image(layers=[described(ONE)] * 1025),
        image(layers=[described(ONE, -1)]),
        image(layers=[described(ONE, True)]),
        image(layers=[described("../../etc/passwd")]),
        image(layers=[{"digest": f"sha512:{ONE}", "size": 1}]),
        image(layers=[described(ONE, mediaType="application/vnd.docker.image.rootfs.foreign.diff.tar.gzip")]),
        image(config=None),
    ],
)
def test_what_an_image_cannot_be_pulled_with_is_refused(said: object) -> None:
    with pytest.raises(ManifestError):
        read(said)


@given(st.binary(max_size=64) | st.from_regex(rb"[\[{\"0-9a-z:,}\]]*", fullmatch=True))
def test_nonsense_is_no_manifest(content: bytes) -> None:
    with pytest.raises(ManifestError):
        read_manifest(content)


def test_questions_to_the_mover_come_as_they_were_asked_and_no_password_is_printed() -> None:
    source = ImageSource(host="r.example.org:5000", path="team/app", username="u", password="secret")
    wanted = PullWanted(source=source, reference="1", architecture="amd64", project=None)
    assert wanted_heard(json.loads(json.dumps(wanted_said(wanted)))) == wanted
    assert "secret" not in f"{wanted}"
    assert source.on_loopback == "r.example.org__5000/team/app"


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("docker.io", "https://registry-1.docker.io"),
        ("r.example.org", "https://r.example.org"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("localhost:5000", "http://localhost:5000"),
        ("10.0.0.1:5000", "https://10.0.0.1:5000"),
        ("127.0.0.1.example.org", "https://127.0.0.1.example.org"),
    ],
)
def test_only_registries_on_this_machine_are_asked_without_tls(host: str, server: str) -> None:
    assert ImageSource(host=host, path="app").server == server


def disk(whole: int, free: int) -> Any:
    return lambda _: SimpleNamespace(f_blocks=whole, f_bavail=free, f_frsize=1)


def put(files: LayerFiles, content: bytes, used_at: int) -> str:
    digest = files.keep(content)
    os.utime(files.directory / "objects" / digest[:2] / digest, (used_at, used_at))
    return digest


def test_the_layers_that_were_not_used_for_longest_go_first_and_those_that_are_wanted_stay(tmp_path: Path) -> None:
    files = LayerFiles(tmp_path, keep_free=10, disk=disk(1000, 1000))
    old, wanted, new = (put(files, bytes(60), 1), put(files, bytes(61), 2), put(files, bytes(62), 3))
    files.make_space(70, [wanted])
    assert [files.kept(each) is None for each in (old, wanted, new)] == [True, False, False]


def test_layers_for_which_there_is_no_space_are_not_kept(tmp_path: Path) -> None:
    with pytest.raises(NoSpaceForLayersError):
        LayerFiles(tmp_path, keep_free=10, disk=disk(1000, 900)).make_space(201, [])
    with pytest.raises(NoSpaceForLayersError):
        LayerFiles(tmp_path, keep_free=10, disk=disk(1000, 250)).make_space(100, [])
    LayerFiles(tmp_path, keep_free=10, disk=disk(1000, 300)).make_space(100, [])


def test_a_layer_that_nobody_goes_on_with_is_forgotten(tmp_path: Path) -> None:
    files = LayerFiles(tmp_path, disk=disk(1000, 1000), clock=lambda: 10 + PART_OF_LAYER_KEPT)
    for digest, at in ((ONE, 9), (TWO, 11)):
        files.arriving(digest, 5).close()
        os.utime(tmp_path / "parts" / digest, (at, at))
    files.make_space(1, [])
    assert [path.name for path in (tmp_path / "parts").iterdir()] == [TWO]


def test_a_manifest_that_was_damaged_counts_as_gone(tmp_path: Path) -> None:
    files = LayerFiles(tmp_path)
    digest = files.keep(b"{}")
    assert (digest, files.content(digest)) == (sha256(b"{}").hexdigest(), b"{}")
    place = tmp_path / "objects" / digest[:2] / digest
    place.chmod(0o600)
    place.write_bytes(b"[]")
    assert (files.content(digest), files.kept(digest)) == (None, None)


def test_a_project_has_an_image_without_the_registry_only_after_its_own_login_or_none_was_enough(
    tmp_path: Path,
) -> None:
    files = LayerFiles(tmp_path)
    digest = files.keep(b"{}")
    files.note("vision", f"r/a@sha256:{digest}")
    files.note("", f"r/b@sha256:{digest}")
    may = {
        (project, name)
        for project in ("", "vision", "speech")
        for name in ("a", "b")
        if files.may_have(project, f"r/{name}@sha256:{digest}")
    }
    assert may == {("vision", "a"), ("", "b"), ("vision", "b"), ("speech", "b")}
    files.free(1 << 40)
    assert not list((tmp_path / "known").iterdir())


def test_layers_make_way_for_others_on_the_same_disk(tmp_path: Path) -> None:
    files = LayerFiles(tmp_path / "layers")
    files.keep(b"12345")
    free = layers_go_first(tmp_path / "layers")
    assert (free(tmp_path, 1), free(tmp_path, 1), layers_go_first(tmp_path / "none")(tmp_path, 1)) == (5, 0, 0)
