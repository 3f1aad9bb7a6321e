"""Our two distributions: what is in their wheels, and what the programs say where something is not installed."""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping, Sequence
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from muster import __version__
from muster.bundle.manifest import normal_name
from muster.bundle.own_wheel import CLIENT, DISTRIBUTIONS, FLEET, OwnDistribution, build_wheels

ROOT = Path(__file__).parents[2]
LIBRARIES = sysconfig.get_path("purelib")
BOTH = "both"
WITHIN = 120.0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The wheels as pip builds them from `packages/`, by distribution."""
    directory = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    projects = [str(ROOT / each.project) for each in DISTRIBUTIONS]
    subprocess.run([*command, "--wheel-dir", str(directory), *projects], check=True, capture_output=True)
    return {each.name: next(directory.glob(f"{each.wheel_name}-*.whl")) for each in DISTRIBUTIONS}


@pytest.fixture(scope="module")
def installed(built: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Directories into which each of these wheels was installed alone, by distribution, and BOTH together."""
    directory = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    wanted = {name: [wheel] for name, wheel in built.items()} | {BOTH: list(built.values())}
    for name, wheels in wanted.items():
        subprocess.run([*command, str(directory / name), *map(str, wheels)], check=True, capture_output=True)
    return {name: directory / name for name in wanted}


def _files(wheel: Path, ours: OwnDistribution) -> set[str]:
    """What a wheel holds beside what describes it."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name for name in archive.namelist() if not name.startswith(f"{ours.wheel_name}-{__version__}.dist-info/")
        }


def _read(wheel: Path, ours: OwnDistribution, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"{ours.wheel_name}-{__version__}.dist-info/{name}").decode()


def _metadata(wheel: Path, ours: OwnDistribution) -> Message:
    return HeaderParser().parsestr(_read(wheel, ours, "METADATA"))


def _required(metadata: Message) -> set[tuple[str, str, str]]:
    found = map(Requirement, metadata.get_all("Requires-Dist", ()))
    return {(normal_name(each.name), str(each.specifier), str(each.marker)) for each in found}


def _python(*paths: str | Path) -> tuple[Sequence[str], dict[str, str]]:
    """A Python that finds modules in these directories alone, beside its own."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MUSTER_", "PYTHON"))}
    return [sys.executable, "-S", "-P"], {**own, "PYTHONPATH": os.pathsep.join(map(str, paths))}


def _said(paths: Sequence[str | Path], *words: str, at: Path) -> tuple[int, str]:
    """The exit code of a program, and all that it wrote."""
    python, environ = _python(*paths)
    done = subprocess.run(
        [*python, *words], env={**environ, "MUSTER_HOME": str(at)}, cwd=at, timeout=WITHIN, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    return done.returncode, done.stdout


MUSTER = ("-c", "from muster.cli.main import main; main()")


def test_the_client_brings_one_package_and_the_fleet_three(installed: Mapping[str, Path]) -> None:
    found = {
        name: {each.name for each in directory.iterdir() if each.is_dir()} - {"bin"}
        for name, directory in installed.items()
        if name != BOTH
    }
    assert found == {
        "muster-client": {"muster", f"muster_client-{__version__}.dist-info"},
        "muster-fleet": {"coordinator", "agent", "console", f"muster_fleet-{__version__}.dist-info"},
    }
    programs = {name: {each.name for each in (directory / "bin").iterdir()} for name, directory in installed.items()}
    assert (programs["muster-client"], programs["muster-fleet"]) == (
        {"muster"},
        {"muster-console", "muster-coordinator", "muster-agent", "muster-depot", "muster-relay"},
    )


@pytest.mark.parametrize("ours", DISTRIBUTIONS, ids=lambda each: each.name)
def test_bundles_hold_the_same_as_what_pip_builds(
    ours: OwnDistribution, built: Mapping[str, Path], tmp_path: Path
) -> None:
    theirs, own = built[ours.name], next(each for each in build_wheels(tmp_path) if each.name == built[ours.name].name)
    assert _files(own, ours) == _files(theirs, ours)
    said, meant = _metadata(own, ours), _metadata(theirs, ours)
    for key in ("Name", "Version", "Requires-Python", "License-Expression"):
        assert said[key] == meant[key]
    assert _required(said) == _required(meant)
    programs = [
        {line for line in _read(wheel, ours, "entry_points.txt").splitlines() if "=" in line} for wheel in (own, theirs)
    ]
    assert programs[0] == programs[1]


def test_the_fleet_wants_the_client_of_its_own_version(built: Mapping[str, Path]) -> None:
    required = _metadata(built[FLEET.name], FLEET).get_all("Requires-Dist", ())
    assert f"{CLIENT.name}=={__version__}" in required


def test_user_code_finds_its_peers_with_the_client_alone(installed: Mapping[str, Path], tmp_path: Path) -> None:
    words = ("-c", "from muster import worker; print(worker.__file__)")
    assert _said([installed[CLIENT.name]], *words, at=tmp_path) == (
        0,
        f"{installed[CLIENT.name] / 'muster' / 'worker.py'}\n",
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*MUSTER, "jobs"), r"muster needs the package typer, .*: `pip install muster-client` brings it"),
        (("-m", "coordinator"), r"muster-coordinator needs the package \w+, .*: `pip install muster-fleet` brings it"),
        (("-m", "agent"), r"muster-agent needs the package \w+, .*: `pip install muster-fleet` brings it"),
    ],
)
def test_a_program_says_in_one_line_what_is_not_installed(
    words: Sequence[str], sentence: str, installed: Mapping[str, Path], tmp_path: Path
) -> None:
    code, said = _said([installed[BOTH]], *words, at=tmp_path)
    assert code == 1
    assert re.fullmatch(f"{sentence}\n", said)


@pytest.mark.parametrize("command", ["up", "demo"])
def test_the_client_alone_says_what_a_fleet_needs(command: str, installed: Mapping[str, Path], tmp_path: Path) -> None:
    code, said = _said([installed[CLIENT.name], LIBRARIES], *MUSTER, command, at=tmp_path)
    sentence = (
        f"error: `muster {command}` starts a coordinator and agents, which are not installed: "
        "`pip install muster-fleet`\n"
    )
    assert (code, said) == (1, sentence)


def test_the_demo_runs_where_there_is_no_clone(installed: Mapping[str, Path], tmp_path: Path) -> None:
    code, said = _said([installed[BOTH], LIBRARIES], *MUSTER, "demo", at=tmp_path)
    assert code == 0, said
    assert "rank 0: the sum over 3 ranks is right" in said
