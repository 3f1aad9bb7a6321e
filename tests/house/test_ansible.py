"""Rules for ansible/: what Ansible's own tools say, what is documented, what it may need."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.house.generate_stubs import ROOT

ANSIBLE = ROOT / "ansible"
ROLES = sorted(path for path in (ANSIBLE / "roles").iterdir() if path.is_dir())
PLAYBOOKS = sorted(path for path in ANSIBLE.glob("*.yml") if not path.name.startswith("inventory"))

LIMIT = 900
"""Seconds after which a program hangs: it takes twenty alone, and many times that beside other tests."""


def _run(directory: Path, program: str, *arguments: str) -> str:
    """What one of Ansible's programs prints, which must end well."""
    path = Path(sys.executable).with_name(program)
    if not path.exists():
        pytest.skip(f"{program} is not installed; `pip install -e '.[dev]'` does that")
    shutil.copytree(ANSIBLE, directory / "ansible")  # not in a checkout, whose settings these programs would look for
    done = subprocess.run(
        [path, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        cwd=directory / "ansible",
        env={
            "ANSIBLE_HOME": str(directory / "home"),
            "HOME": str(directory),
            "LC_ALL": "C.UTF-8",
            "PATH": f"{path.parent}:{os.environ['PATH']}",
        },
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_ansible_lint_finds_nothing_by_its_strictest_profile(tmp_path: Path) -> None:
    assert "0 failure(s), 0 warning(s)" in _run(tmp_path, "ansible-lint", "--offline", "--profile", "production", ".")


def test_playbooks_and_the_example_inventory_can_be_read(tmp_path: Path) -> None:
    names = [path.name for path in PLAYBOOKS]
    assert names == ["drain.yml", "remove.yml", "site.yml", "upgrade.yml"]
    _run(tmp_path, "ansible-playbook", "--syntax-check", "--inventory", "inventory.example.yml", *names)


def test_every_variable_of_a_role_is_specified_and_documented() -> None:
    for role in ROLES:
        specs = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]
        options = {name: option for spec in specs.values() for name, option in spec["options"].items()}
        defaults = yaml.safe_load((role / "defaults/main.yml").read_text())
        text = (role / "README.md").read_text()
        assert set(defaults) <= set(options), role.name
        assert [name for name, option in options.items() if not option.get("description")] == [], role.name
        assert [name for name in options if f"| `{name}` |" not in text] == [], role.name


def test_stated_defaults_are_the_defaults() -> None:
    for role in ROLES:
        specs = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]
        defaults = yaml.safe_load((role / "defaults/main.yml").read_text())
        stated = {
            name: option["default"]
            for spec in specs.values()
            for name, option in spec["options"].items()
            if "default" in option
        }
        assert {name: defaults[name] for name in stated} == stated, role.name


def test_no_collection_is_needed_beyond_what_ansible_brings() -> None:
    modules = {
        found
        for path in (*ANSIBLE.rglob("tasks/*.yml"), *ANSIBLE.rglob("handlers/*.yml"), *PLAYBOOKS)
        for found in re.findall(r"^\s+(?:- )?([a-z_]+\.[a-z_]+\.[a-z_]+):", path.read_text(), re.MULTILINE)
    }
    assert "ansible.builtin.template" in modules
    assert {name for name in modules if not name.startswith("ansible.builtin.")} == set()


def test_roles_are_no_python_packages() -> None:
    assert list(ANSIBLE.rglob("__init__.py")) == []
