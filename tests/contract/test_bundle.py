"""Bundles as they are made, shown and verified: with small wheels, and with nothing from any index."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pip
import pytest

from muster.bundle.archive import read_bundle, verify_bundle
from muster.bundle.create import BundlePlan, create_bundle
from muster.bundle.manifest import InvalidBundleError
from muster.bundle.own_wheel import DISTRIBUTIONS, build_wheels
from muster.bundle.wheels import Platform
from muster.domain.errors import ExhaustedError, MusterError, UnavailableError
from tests.small_bundles import make_own_wheels, make_wheel

PLATFORMS = (Platform("3.11", "x86_64"), Platform("3.12", "aarch64"))


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A directory of wheels: one for all platforms, one that is there for each of ours, and pip."""
    directory = tmp_path / "shelf"
    directory.mkdir()
    make_wheel(directory, "tiny")
    make_wheel(directory, "pip", "26.0")
    make_wheel(directory, "fast", tag="cp311-cp311-manylinux_2_28_x86_64")
    make_wheel(directory, "fast", tag="cp312-cp312-manylinux2014_aarch64")
    return directory


@pytest.fixture
def own(tmp_path: Path) -> tuple[Path, ...]:
    directory = tmp_path / "own"
    directory.mkdir()
    return make_own_wheels(directory)


def _plan(tmp_path: Path, shelf: Path, own: Sequence[Path], **more: Any) -> BundlePlan:
    output = tmp_path / "made" / "bundle.tar"
    output.parent.mkdir(exist_ok=True)
    return BundlePlan(platforms=PLATFORMS, output=output, wheels=own, find_links=shelf, **more)


def test_a_bundle_has_wheels_for_each_platform_and_is_the_same_each_time(
    tmp_path: Path, shelf: Path, own: tuple[Path, ...]
) -> None:
    told: list[str] = []
    made = create_bundle(_plan(tmp_path, shelf, own), told.append)
    first = made.read_bytes()
    manifest = verify_bundle(made)
    for wheel in shelf.iterdir():
        os.utime(wheel, (1, 1))
    again = create_bundle(_plan(tmp_path, shelf, own), told.append).read_bytes()

    assert manifest.platforms == ("cp311-x86_64", "cp312-aarch64")
    assert sorted(manifest.files) == [
        "install.sh",
        "requirements/cp311-x86_64.txt",
        "requirements/cp312-aarch64.txt",
        "sbom.cdx.json",
        "units/muster-agent.service",
        "units/muster-console.service",
        "units/muster-coordinator.service",
        "units/muster-depot.service",
        "units/muster-relay.service",
        "wheels/fast-1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "wheels/fast-1.0-cp312-cp312-manylinux2014_aarch64.whl",
        "wheels/muster_client-0.1.0-py3-none-any.whl",
        "wheels/muster_fleet-0.1.0-py3-none-any.whl",
        "wheels/pip-26.0-py3-none-any.whl",
        "wheels/tiny-1.0-py3-none-any.whl",
    ]
    assert again == first
    assert [line.split(":")[0] for line in told[:4]] == [*(each.name for each in own), "cp311-x86_64", "cp312-aarch64"]
    assert list(made.parent.iterdir()) == [made]
    with tarfile.open(made) as archive:
        assert archive.getnames()[:2] == ["bundle.json", "install.sh"]


def test_a_wheel_that_is_missing_for_a_platform_is_named_and_nothing_is_left(
    tmp_path: Path, shelf: Path, own: tuple[Path, ...]
) -> None:
    (shelf / "fast-1.0-cp312-cp312-manylinux2014_aarch64.whl").unlink()
    plan = _plan(tmp_path, shelf, own)
    with pytest.raises(MusterError, match=r"there is no wheel of fast for cp312-aarch64 in .*/shelf; leave"):
        create_bundle(plan, lambda _: None)
    assert list((tmp_path / "made").iterdir()) == []


def test_what_is_no_wheel_of_ours_is_refused(tmp_path: Path, shelf: Path) -> None:
    other = make_wheel(tmp_path, "other")
    named = [Path(shutil.copy(other, tmp_path / f"muster_{each}-1.0-py3-none-any.whl")) for each in ("client", "fleet")]
    for wheels in ([other], named):
        with pytest.raises(MusterError, match="is no wheel of Muster"):
            create_bundle(_plan(tmp_path, shelf, wheels), lambda _: None)


def test_one_wheel_of_each_distribution_and_of_one_version_is_wanted(tmp_path: Path, shelf: Path) -> None:
    (tmp_path / "newer").mkdir()
    client, fleet = make_own_wheels(tmp_path)
    newer, _ = make_own_wheels(tmp_path / "newer", "0.2.0")
    with pytest.raises(MusterError, match="the wheel of muster-fleet is missing; name each with --wheel FILE"):
        create_bundle(_plan(tmp_path, shelf, [client]), lambda _: None)
    for wheels in ([newer, fleet], [client, newer, fleet]):
        with pytest.raises(MusterError, match="are not one version of Muster"):
            create_bundle(_plan(tmp_path, shelf, wheels), lambda _: None)


def test_without_a_network_the_remedy_is_told(
    tmp_path: Path, own: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    plan = BundlePlan(platforms=PLATFORMS, output=tmp_path / "made.tar", wheels=own)
    with pytest.raises(UnavailableError, match=r"the package index cannot be reached.*--find-links DIR"):
        create_bundle(plan, lambda _: None)
    assert not (tmp_path / "made.tar").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid():
        pytest.skip("a small file system needs root")
    at = tmp_path / "small"
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(at)], check=True)
    yield at
    subprocess.run(["umount", str(at)], check=True)


def test_a_full_disk_is_told_and_nothing_is_left(small_disk: Path, shelf: Path, own: tuple[Path, ...]) -> None:
    plan = BundlePlan(platforms=PLATFORMS, output=small_disk / "bundle.tar", wheels=own, find_links=shelf)
    with pytest.raises(ExhaustedError):
        create_bundle(plan, lambda _: None)
    assert list(small_disk.iterdir()) == []


def _changed(made: Path, name: str, content: bytes | None) -> None:
    """The bundle with a file that is other, more, or gone."""
    with tarfile.open(made) as archive:
        members = {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]  # a file
    members.pop(name, None)
    if content is not None:
        members[name] = content
    with tarfile.open(made, "w") as archive:
        for each, data in members.items():
            entry = tarfile.TarInfo(each)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("wheels/tiny-1.0-py3-none-any.whl", b"other", r"wheels/tiny-1\.0-py3-none-any\.whl was changed"),
        ("install.sh", b"#!/bin/sh\nreboot\n", r"install\.sh was changed"),
        ("wheels/evil-1.0-py3-none-any.whl", b"more", r"wheels/evil-1\.0-py3-none-any\.whl does not belong there"),
        ("units/muster-agent.service", None, r"units/muster-agent\.service is missing"),
    ],
)
def test_what_was_tampered_with_is_found(
    tmp_path: Path, shelf: Path, own: tuple[Path, ...], name: str, content: bytes | None, problem: str
) -> None:
    made = create_bundle(_plan(tmp_path, shelf, own), lambda _: None)
    _changed(made, name, content)
    with pytest.raises(InvalidBundleError, match=problem):
        verify_bundle(made)


def _linked(entry: tarfile.TarInfo) -> None:
    entry.type, entry.linkname, entry.size = tarfile.SYMTYPE, "/etc/passwd", 0


def _named_twice(entry: tarfile.TarInfo) -> None:
    entry.pax_headers = {"comment": "other programs may read another name here"}


@pytest.mark.parametrize("change", [_linked, _named_twice])
def test_what_programs_that_unpack_may_see_differently_is_refused(
    tmp_path: Path, shelf: Path, own: tuple[Path, ...], change: Callable[[tarfile.TarInfo], None]
) -> None:
    made = create_bundle(_plan(tmp_path, shelf, own), lambda _: None)
    with tarfile.open(made) as archive:
        members = [(each, archive.extractfile(each).read()) for each in archive]  # type: ignore[union-attr]  # a file
    with tarfile.open(made, "w", format=tarfile.PAX_FORMAT) as archive:
        for entry, content in members:
            if entry.name.startswith("wheels/tiny"):
                change(entry)
            archive.addfile(entry, io.BytesIO(content))
    with pytest.raises(InvalidBundleError, match=r"wheels/tiny-1\.0-py3-none-any\.whl does not belong there"):
        verify_bundle(made)


def test_what_did_not_arrive_whole_is_found(tmp_path: Path, shelf: Path, own: tuple[Path, ...]) -> None:
    made = create_bundle(_plan(tmp_path, shelf, own), lambda _: None)
    whole = made.read_bytes()
    for length in (0, 100, 5000, len(whole) // 2):
        made.write_bytes(whole[:length])
        with pytest.raises(InvalidBundleError):
            verify_bundle(made)
    with pytest.raises(MusterError, match=r"cannot read .*nowhere"):
        read_bundle(tmp_path / "nowhere")


def test_our_own_wheels_install_what_runs_here(tmp_path: Path) -> None:
    wheels = build_wheels(tmp_path)
    first = [wheel.read_bytes() for wheel in wheels]
    assert [wheel.read_bytes() for wheel in build_wheels(tmp_path)] == first
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*command, str(tmp_path / "there"), *map(str, wheels)], check=True, capture_output=True)
    run = [sys.executable, "-P", str(tmp_path / "there" / "bin" / "muster"), "version"]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "there")}
    assert subprocess.run(run, check=True, capture_output=True, text=True, env=environ).stdout == "0.1.0\n"
    assert (
        tmp_path / "there" / "agent" / "runtimes" / "docker" / "holder_program" / "holder-aarch64"
    ).stat().st_size > 0


INSTALLER = Path(__file__).parents[2] / "muster" / "bundle" / "install.sh"


def test_the_installer_runs_no_module_of_the_directory_in_which_it_was_called(tmp_path: Path, shelf: Path) -> None:
    """The installer is called as root, and the directory may be /tmp."""
    strangers, here = tmp_path / "strangers", tmp_path / "here"
    strangers.mkdir()
    here.mkdir()
    shelf.rename(here / "wheels")
    for module in ("venv", "runpy", "compileall", "pip", "json"):
        (strangers / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    functions = INSTALLER.read_text().replace('\nmain "$@"\n', "\n")
    settings = f"here={here} PREFIX={tmp_path} unfinished={tmp_path}/new tree={tmp_path}/tree version=0.1.0"
    script = f"{functions}\n{settings}\nmake_venv {sys.executable} cp311-x86_64 || true\n"
    subprocess.run(["sh", "-c", script], cwd=strangers, check=True)
    assert (tmp_path / "new" / "bin" / "python").exists()
    assert not (tmp_path / "ran").exists()


def _run(script: str) -> subprocess.CompletedProcess[str]:
    """The installer's functions, and then what is given."""
    functions = INSTALLER.read_text().replace('\nmain "$@"\n', "\n")
    return subprocess.run(["sh", "-c", f"{functions}\n{script}"], capture_output=True, text=True, check=False)


def _real_pip(wheel: Path) -> None:
    """The pip of this Python, in place of the small one."""
    package = Path(pip.__file__).parent
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in package.rglob("*"):
            if path.suffix != ".pyc":
                archive.write(path, path.relative_to(package.parent))


def _made_venv(tmp_path: Path, made: Path, name: str) -> subprocess.CompletedProcess[str]:
    here = tmp_path / name
    here.mkdir()
    subprocess.run(["tar", "-xf", made, "-C", here], check=True)
    _real_pip(here / "wheels" / "pip-26.0-py3-none-any.whl")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    done = _run(
        f"here={here} PREFIX={here} unfinished={here}/new tree={here}/tree version=0.1.0\n"
        f"if make_venv {sys.executable} {python}-x86_64; then echo made; else echo refused; fi\n"
    )
    done.stderr += (here / ".install.log").read_text()
    return done


def test_the_installer_installs_what_is_listed_with_its_hash_and_nothing_else(
    tmp_path: Path, shelf: Path, own: tuple[Path, ...]
) -> None:
    platform = Platform(f"{sys.version_info.major}.{sys.version_info.minor}", "x86_64")
    for wheel in shelf.glob("fast-*"):
        wheel.unlink()
    make_wheel(shelf, "fast")
    plan = replace(_plan(tmp_path, shelf, own), platforms=[platform])
    made = create_bundle(plan, lambda _: None)
    done = _made_venv(tmp_path, made, "good")
    assert done.stdout == "made\n", done.stderr
    installed = {each.name for each in (tmp_path / "good" / "new").rglob("*.dist-info")}
    ours = {f"{each.wheel_name}-0.1.0.dist-info" for each in DISTRIBUTIONS}
    assert installed == ours | {"tiny-1.0.dist-info", "fast-1.0.dist-info"}

    shutil.rmtree(tmp_path / "good")
    with tarfile.open(made) as archive:
        listed = archive.extractfile(f"requirements/{platform}.txt").read()  # type: ignore[union-attr]  # a file
    _changed(
        made, f"requirements/{platform}.txt", listed.replace(b"tiny==1.0 --hash=sha256:", b"tiny==1.0 --hash=sha256:0")
    )
    done = _made_venv(tmp_path, made, "other")
    assert done.stdout == "refused\n"
    _changed(made, f"requirements/{platform}.txt", listed)
    make_wheel(tmp_path, "tiny", requires=("something",))
    _changed(made, "wheels/tiny-1.0-py3-none-any.whl", (tmp_path / "tiny-1.0-py3-none-any.whl").read_bytes())
    done = _made_venv(tmp_path, made, "changed")
    assert done.stdout == "refused\n"
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr
