"""The cgroups of an execution, as its directory notes them."""

from collections.abc import Iterable
from pathlib import Path

from agent.runtimes.process.confines import noted_groups
from tests.contract.runtimes import Trial


def cgroups_of(trial: Trial) -> list[str]:
    """The cgroups of an execution."""
    return still_there(noted_groups(trial.directory))


def still_there(groups: Iterable[str]) -> list[str]:
    """Cgroups out of these that were not removed."""
    return [group for group in groups if Path(group).exists()]


def weights(trial: Trial) -> list[str]:
    """What the kernel weighs an execution by, in either version of cgroups."""
    return of_each(trial, "cpu.weight", "cpu.shares")


def of_each(trial: Trial, *names: str) -> list[str]:
    """The content of files of these names in its cgroups."""
    files = (Path(group, name) for group in cgroups_of(trial) for name in names)
    return [file.read_text().strip() for file in files if file.exists()]


def make_below(group: str) -> None:
    """Make a cgroup in another, as a program with the right to it may."""
    Path(group, "below").mkdir()
