"""What texts say about installing: the name `muster` on the package index is somebody else's."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

from muster import __version__
from muster.bundle.own_wheel import DISTRIBUTIONS
from tests.house.generate_stubs import ROOT

INSTALLED = re.compile(r"\b(?:pipx?|uv)\b[^\n`|]*?\b(?:install|add|wheel|download)\b(?P<words>[^\n`|#&;]*)")
FOREIGN = re.compile(r"""(?<![\w./$-])['"]?muster(?:\[[^\]]*\])?(?:[=<>~!]=?[\w.]*)?['"]?(?=\s|$|[),.;])""")
TEXTS = {".md", ".py", ".sh", ".toml", ".yml", ".yaml", ".j2", ".Dockerfile", ""}


def _foreign(text: str) -> Iterator[str]:
    """Commands that would install what is not ours."""
    yield from (found[0] for found in INSTALLED.finditer(text) if FOREIGN.search(found["words"]))


def _texts() -> Iterator[Path]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().splitlines():
        path = ROOT / name
        if path.suffix in TEXTS and path.is_file() and path != Path(__file__):
            yield path


def test_no_text_tells_anybody_to_install_what_is_somebody_elses() -> None:
    found = {str(path.relative_to(ROOT)): list(_foreign(path.read_text(errors="replace"))) for path in _texts()}
    assert {name: commands for name, commands in found.items() if commands} == {}


def test_such_a_text_would_be_found() -> None:
    for text in (
        "pip install muster",
        "`pip install 'muster[ssh]'`, or",
        "pip install --no-deps muster\n",
        "uv pip install muster==0.1.0",
        "pipx install muster.",
    ):
        assert list(_foreign(text)), text
    for text in (
        "pip install muster-client",
        "pip install 'muster-client[ssh]'",
        "pip install ./packages/client",
        "uv venv, and muster submit",
        "pip install -e . && muster up",
    ):
        assert not list(_foreign(text)), text


def test_the_fleet_wants_the_client_of_its_own_version() -> None:
    project = tomllib.loads((ROOT / "packages" / "fleet" / "pyproject.toml").read_text())["project"]
    assert f"muster-client=={__version__}" in project["dependencies"]


def test_each_distribution_lies_where_bundles_look_for_it() -> None:
    for ours in DISTRIBUTIONS:
        assert tomllib.loads((ROOT / ours.project / "pyproject.toml").read_text())["project"]["name"] == ours.name


def test_a_demo_installs_none_of_the_tools_for_tests() -> None:
    nowhere = "VENV=/nowhere/venv"
    told = subprocess.run(
        ["make", "--dry-run", "demo", nowhere, "UV="], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "pip install" in told
    assert "dev" not in told.replace("/dev/null", "")
