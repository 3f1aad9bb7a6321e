"""Job files in examples and documents are valid, and examples run where Muster is not installed."""

import ast
import re
import sys
from pathlib import Path

import pytest
import yaml

from muster.jobfile import load_job
from tests.house.generate_stubs import ROOT

JOB_FILES = sorted((ROOT / "examples").glob("*/*.yaml"))
PROGRAMS = sorted((ROOT / "examples").glob("*/*.py"))
INSTALLED = {"torch", "sklearn", "muster_worker"}
"""What the image of an example brings along, and the module that lies beside the roster files."""
DOCUMENTS = [ROOT / "README.md", ROOT / "docs" / "first-job.md", ROOT / "docs" / "development-environments.md"]


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", JOB_FILES, ids=_named)
def test_an_example_is_a_valid_job_that_brings_its_program(path: Path) -> None:
    job = load_job(path.read_text(), str(path), base=path.parent)
    assert job.name == path.parent.name
    assert {file.path: file.content for file in job.roles[0].files} == {
        program.name: program.read_bytes() for program in PROGRAMS if program.parent == path.parent
    }


@pytest.mark.parametrize("path", [path for path in JOB_FILES if "image:" in path.read_text()], ids=_named)
def test_an_example_in_containers_tells_how_its_image_is_made(path: Path) -> None:
    image = load_job(path.read_text(), str(path), base=path.parent).roles[0].image
    assert image is not None
    made = f"docker build -t {image.partition(':')[0]} examples/{path.parent.name}"
    assert made in path.with_name("Dockerfile").read_text()
    assert made in (ROOT / "examples" / "README.md").read_text()
    assert path.with_name("processes.yaml") in JOB_FILES


@pytest.mark.parametrize("path", PROGRAMS, ids=_named)
def test_an_example_does_not_need_muster_to_be_installed(path: Path) -> None:
    tree = ast.parse(path.read_text())
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names | INSTALLED


@pytest.mark.parametrize("path", DOCUMENTS, ids=_named)
def test_job_files_in_documents_are_valid(path: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", path.read_text(), re.DOTALL)
    jobs = [block for block in blocks if "name:" in block]
    assert jobs
    for block in jobs:
        for file in yaml.safe_load(block).get("files", []):
            (tmp_path / file["source"]).touch()
        load_job(block, _named(path), base=tmp_path)
