"""The job files of docs/frameworks.md, for machines of this size."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from muster.domain.jobs.job import JobSpec, Resources, Role
from muster.domain.jobs.rules.filling_in import filled_in
from muster.jobfile import load_jobs

PAGE = Path(__file__).parents[2] / "docs" / "frameworks.md"


@cache
def recipes() -> Mapping[str, list[JobSpec]]:
    """The jobs of each section, by its heading."""
    sections = re.split(r"^#+ (.*)$", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {heading: _jobs(text) for heading, text in zip(sections[::2], sections[1::2], strict=True)}


def recipe(heading: str, old: str, new: str, *, processes: int = 1, path: str | None = None, which: int = 0) -> JobSpec:
    """A job of a section with another program in its command, and two executions, or one for each of its roles.

    They are plain processes without GPUs; `path` is where their programs are looked for.
    """
    spec = recipes()[heading][which]
    assert spec.framework is not None
    assert any(old in word for role in spec.roles for word in role.command), (heading, old)
    count = 2 if len(spec.roles) == 1 else 1

    def small(role: Role) -> Role:
        words = tuple(word.replace(old, new) for word in role.command)
        env = {} if path is None else {"PATH": path}
        resources = Resources(cpu_millis=100)
        return replace(role, count=count, command=words, image=None, resources=resources, env=env)

    framework = replace(spec.framework, processes=processes)
    return filled_in(replace(spec, roles=tuple(map(small, spec.roles)), framework=framework))


def _jobs(text: str) -> list[JobSpec]:
    """What the blocks say; a block may leave out what another one before has said."""
    files = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    named = (file if "name: train" in file else f"name: train\n{file}" for file in files)
    return [spec for file in named for _, spec in load_jobs(file, PAGE.name)]
