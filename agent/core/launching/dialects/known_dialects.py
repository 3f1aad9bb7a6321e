"""The dialects that an execution can be launched with."""

from collections.abc import Iterator
from typing import assert_never

from agent.core.launching.dialects.runai import runai
from agent.core.launching.dialects.skypilot import skypilot
from agent.core.launching.dialects.slurm import slurm
from agent.core.launching.dialects.valohai import valohai
from agent.core.launching.frameworks.surroundings import Surroundings
from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import Roster
from muster.domain.jobs.frameworks.dialect import Dialect


def spoken(who: Assignment, roster: Roster, site: LaunchSite) -> Surroundings:
    """What the dialects of its job bring to an execution, all together; no two of them set the same variable."""
    env: dict[str, str] = {}
    defaults: dict[str, str] = {}
    files: dict[str, bytes] = {}
    programs: dict[str, bytes] = {}
    names: dict[str, str] = {}
    own = ""
    wrapper: tuple[str, ...] = ()
    for each in _each(who, roster, site):
        env |= each.env
        defaults |= each.defaults
        files |= each.files
        programs |= each.programs
        names |= each.host_names
        own = own or each.own_variables
        wrapper = wrapper or each.wrapper
    return Surroundings(
        env=env,
        defaults=defaults,
        files=files,
        programs=programs,
        host_names=names,
        own_variables=own,
        wrapper=wrapper,
    )


def _each(who: Assignment, roster: Roster, site: LaunchSite) -> Iterator[Surroundings]:
    for dialect in who.dialects:
        match dialect:
            case Dialect.SLURM:
                yield slurm(who, roster, site)
            case Dialect.VALOHAI:
                yield valohai(who, roster, site)
            case Dialect.RUNAI:
                yield runai(who, roster)
            case Dialect.SKYPILOT:
                yield skypilot(who, roster)
            case unknown:
                assert_never(unknown)
