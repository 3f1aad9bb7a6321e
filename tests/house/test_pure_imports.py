"""What runs inside a user's container, and the domain, need nothing but the standard library."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.generate_stubs import ROOT

MODULES = (
    "muster.worker",
    *(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted((ROOT / "muster" / "domain").rglob("*.py"))
        if path.stem != "__init__"
    ),
)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_loads_without_any_installed_package(module: str, tmp_path: Path) -> None:
    program = f"import sys; sys.path.append({str(ROOT)!r}); import {module}"
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
