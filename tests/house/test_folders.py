"""Rules for every folder of the three packages: how much it holds, how it is called, which way its arrows go."""

import ast
import functools
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.house.generate_stubs import ROOT

PACKAGES = ("muster", "coordinator", "agent", "console")

MOST_MODULES = 15
"""Modules of a folder, beside its sub-folders; a folder that needs more holds two subjects."""

MOST_OF_A_PREFIX = 2
"""Modules of a folder whose names begin with one word; three of them are a folder of that name."""

MOST_LAYERS = 10
"""Layers of a contract; who needs more has not found the rooms yet."""

GENERATED = "muster/rpc/v1"
NUMBERED = "coordinator/store/migrations/versions"
"""Migrations are only ever added."""

WORKER = "muster/worker.py"
"""What user code imports stands alone, so it has its own classes for what the domain knows, too."""


def _folders(root: Path) -> Iterator[Path]:
    for package in PACKAGES:
        found = {path.parent for path in (root / package).rglob("*.py")}
        yield from sorted(each for each in found if str(each.relative_to(root)) not in {GENERATED, NUMBERED})


def _modules(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("__"))


def crowded(root: Path) -> list[str]:
    """Folders with too many modules."""
    return [str(each.relative_to(root)) for each in _folders(root) if len(_modules(each)) > MOST_MODULES]


def prefixed(root: Path) -> list[str]:
    """Prefixes that ask to be folders."""
    return [
        f"{folder.relative_to(root)}/{prefix}_"
        for folder in _folders(root)
        for prefix, count in Counter(name.partition("_")[0] for name in _modules(folder) if "_" in name).items()
        if count > MOST_OF_A_PREFIX
    ]


def unexplained(root: Path) -> list[str]:
    """Folders whose `__init__` does not say in a sentence what they hold."""
    inits = [folder / "__init__.py" for folder in _folders(root)]
    return [str(path.relative_to(root)) for path in inits if not path.exists() or not _docstring(path)]


def _docstring(path: Path) -> str | None:
    return ast.get_docstring(ast.parse(path.read_text()))


def doubled(root: Path) -> dict[str, list[str]]:
    """Public classes whose name is used twice."""
    where = defaultdict(list)
    for folder in _folders(root):
        for path in sorted(folder.glob("*.py")):
            name = str(path.relative_to(root))
            for node in ast.parse(path.read_text()).body if name != WORKER else ():
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    where[node.name].append(name)
    return {name: paths for name, paths in where.items() if len(paths) > 1}


def vague(root: Path) -> dict[str, list[str]]:
    """Public constants whose name is used twice, so that it does not say of what."""
    where = defaultdict(list)
    for folder in _folders(root):
        for path in sorted(folder.glob("*.py")):
            for name in _constants(ast.parse(path.read_text())):
                where[name].append(str(path.relative_to(root)))
    return {name: paths for name, paths in where.items() if len(paths) > 1}


def _constants(tree: ast.Module) -> Iterator[str]:
    """Names in capitals that a module gives to others; type variables are letters."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = [each.id for target in targets if target for each in ast.walk(target) if isinstance(each, ast.Name)]
        yield from (name for name in names if len(name) > 1 and name.isupper() and not name.startswith("_"))


def _arrows(root: Path, folder: Path) -> dict[str, set[str]]:
    """Arrows of a folder: for each module and sub-folder the others that it imports."""
    prefix = ".".join(folder.relative_to(root).parts) + "."
    arrows: dict[str, set[str]] = defaultdict(set)
    for path in folder.rglob("*.py"):
        own = path.relative_to(folder).with_suffix("").parts[0]
        found = {name.removeprefix(prefix).partition(".")[0] for name in _imported(path) if name.startswith(prefix)}
        arrows[own] |= {each for each in found if each != own and _exists(folder, each)}
    return arrows


@functools.cache
def _imported(path: Path) -> frozenset[str]:
    """What a module imports; asked once for each folder that it lies in."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def _exists(folder: Path, name: str) -> bool:
    return (folder / name).is_dir() or (folder / f"{name}.py").exists()


def circles(root: Path) -> list[str]:
    """Folders in which a module or sub-folder imports, by whatever way, one that imports it."""
    found = []
    for folder in _folders(root):
        arrows = _arrows(root, folder)
        if any(name in _reached(arrows, name) for name in list(arrows)):
            found.append(str(folder.relative_to(root)))
    return found


def _reached(arrows: Mapping[str, Iterable[str]], start: str) -> set[str]:
    seen: set[str] = set()
    ahead = list(arrows.get(start, ()))
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead += arrows.get(name, ())
    return seen


def _contracts(settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    every: list[Mapping[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return [each for each in every if each["type"] == "layers"]


def loose(settings: Mapping[str, Any]) -> list[str]:
    """Layer contracts that could hide something: too long, with arrows between siblings, or with holes."""
    return [
        each["name"]
        for each in _contracts(settings)
        if len(each["layers"]) > MOST_LAYERS
        or any(":" in layer for layer in each["layers"])
        or each.get("exhaustive") is not True
    ]


def unlayered(root: Path, settings: Mapping[str, Any]) -> list[str]:
    """Folders with at least two rooms and no contract that says which of them rests on which."""
    held = {container for each in _contracts(settings) for container in each["containers"]}
    return [
        name
        for folder in _folders(root)
        if sum((each / "__init__.py").exists() for each in folder.iterdir()) > 1
        and (name := ".".join(folder.relative_to(root).parts)) not in held
    ]


def test_a_folder_has_at_most_fifteen_modules() -> None:
    assert crowded(ROOT) == []


def test_three_modules_with_one_prefix_are_a_folder() -> None:
    assert prefixed(ROOT) == []


def test_a_folder_says_what_it_holds() -> None:
    assert unexplained(ROOT) == []


def test_the_name_of_a_public_class_exists_once() -> None:
    assert doubled(ROOT) == {}


def test_a_constant_says_of_what() -> None:
    assert vague(ROOT) == {}


def test_no_modules_of_a_folder_import_each_other() -> None:
    assert circles(ROOT) == []


def test_contracts_of_layers_are_short_and_exhaustive() -> None:
    assert loose(tomllib.loads((ROOT / "pyproject.toml").read_text())) == []


def test_a_folder_of_several_rooms_has_a_contract() -> None:
    assert unlayered(ROOT, tomllib.loads((ROOT / "pyproject.toml").read_text())) == []


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A small house that keeps all rules."""
    _write(tmp_path, "agent/__init__.py", '"""The agent."""')
    _write(tmp_path, "agent/loop/__init__.py", '"""What an agent does."""')
    _write(tmp_path, "agent/loop/step.py", "class Step: ...")
    _write(tmp_path, "agent/logs/__init__.py", '"""What is printed."""')
    _write(tmp_path, "agent/logs/file.py", "from agent.loop.step import Step")
    return tmp_path


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


CONTRACT = {"name": "agent", "type": "layers", "containers": ["agent"], "layers": ["logs", "loop"], "exhaustive": True}


def _settings(**changed: object) -> dict[str, Any]:
    return {"tool": {"importlinter": {"contracts": [{**CONTRACT, **changed}]}}}


def test_a_house_in_order_is_left_alone(house: Path) -> None:
    assert [crowded(house), prefixed(house), unexplained(house), circles(house), unlayered(house, _settings())] == [
        []
    ] * 5
    assert (doubled(house), loose(_settings())) == ({}, [])


def test_a_sixteenth_module_would_be_found(house: Path) -> None:
    for number in range(MOST_MODULES):
        _write(house, f"agent/loop/n{number}.py", "")
    assert crowded(house) == ["agent/loop"]


def test_a_third_module_with_a_prefix_would_be_found(house: Path) -> None:
    for name in ("log_file", "log_mask", "log_push"):
        _write(house, f"agent/loop/{name}.py", "")
    assert prefixed(house) == ["agent/loop/log_"]


def test_a_silent_folder_would_be_found(house: Path) -> None:
    _write(house, "agent/gpus/found.py", "")
    _write(house, "agent/loop/__init__.py", "")
    assert unexplained(house) == ["agent/gpus/__init__.py", "agent/loop/__init__.py"]


def test_a_second_class_of_a_name_would_be_found(house: Path) -> None:
    _write(house, "coordinator/core/step.py", "class Step: ...\nclass _Step: ...")
    assert doubled(house) == {"Step": ["coordinator/core/step.py", "agent/loop/step.py"]}


def test_a_constant_that_could_be_anybodys_would_be_found(house: Path) -> None:
    _write(house, "agent/loop/exits.py", "EXIT_PATIENCE, PATIENCE = 2, 1\n_LIMIT = 3")
    _write(house, "agent/logs/push.py", "PATIENCE: float = 1.0\n_LIMIT = 4")
    assert vague(house) == {"PATIENCE": ["agent/logs/push.py", "agent/loop/exits.py"]}


def test_two_that_import_each_other_would_be_found(house: Path) -> None:
    _write(house, "agent/loop/exits.py", "def end() -> None:\n    import agent.logs.file")
    assert circles(house) == ["agent"]


@pytest.mark.parametrize(
    "changed",
    [{"layers": ["logs : loop"]}, {"layers": [str(number) for number in range(11)]}, {"exhaustive": False}],
    ids=["siblings", "too long", "holes"],
)
def test_a_loose_contract_would_be_found(changed: dict[str, object]) -> None:
    assert loose(_settings(**changed)) == ["agent"]


def test_a_folder_without_a_contract_would_be_found(house: Path) -> None:
    assert unlayered(house, _settings(containers=["coordinator"])) == ["agent"]
