"""Rules for ansible/: what Ansible's own tools say, what is documented, what it may need."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from muster.cli.program import program
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
    assert names == ["drain.yml", "quotas.yml", "remove.yml", "site.yml", "upgrade.yml"]
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


def test_every_command_of_muster_that_a_role_runs_is_one_that_the_program_has() -> None:
    root = get_command(program())
    assert unknown_commands(root, [["muster-admin", "bundle", "list"]]) == ["muster-admin bundle list"]

    run = [words for file in sorted(ANSIBLE.rglob("tasks/*.yml")) for words in _argvs(yaml.safe_load(file.read_text()))]

    assert len(run) > len(ROLES)
    assert unknown_commands(root, run) == []


def unknown_commands(root: Any, run: Iterable[Sequence[str]]) -> list[str]:
    """The command lines with a word for a command that there is not."""
    unknown = []
    for words in run:
        command = root
        for word in words[1:]:
            inner = getattr(command, "commands", {})
            if not inner or word.startswith("-"):
                break
            if word not in inner:
                unknown.append(" ".join(words))
                break
            command = inner[word]
    return unknown


def _argvs(tasks: object) -> Iterator[list[str]]:
    """The words of each command line of the client in these tasks, and in their blocks."""
    if isinstance(tasks, list):
        for each in tasks:
            yield from _argvs(each)
    elif isinstance(tasks, dict):
        for key, value in tasks.items():
            if key == "argv" and value[0] == "muster-admin":
                yield list(map(str, value))
            else:
                yield from _argvs(value)
