"""Targets of commands in a gang: which members of an attempt the text after `muster-exec` names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from agent.core.door.packets import Targets
from muster.domain.gangs.ranks import parse_ranks
from muster.domain.gangs.roster import Roster, host_names
from muster.domain.visible_text import visible

MOST_LISTED = 8
"""Names of members, or first and last names of their rows, that one sentence lists."""

SHORT_ROW = 2
"""Names of one role that are listed one by one."""

LONGEST_SHOWN = 80
"""Characters of a target that a sentence repeats."""

_RANK = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class TargetRefused:
    """Why a text names no member, as a sentence for the one who wrote it."""

    text: str


def ranks_of(roster: Roster, targets: Targets, target: str) -> tuple[int, ...] | TargetRefused:
    """The ranks that a caller names, in their order."""
    match targets:
        case Targets.ALL:
            return tuple(range(len(roster.nodes)))
        case Targets.RANKS:
            return _several(roster, target)
        case Targets.ONE:
            return _one(roster, target)


def _several(roster: Roster, target: str) -> tuple[int, ...] | TargetRefused:
    try:
        ranks = sorted(parse_ranks(target))
    except ValueError as error:
        return TargetRefused(visible(str(error)))
    strangers = [rank for rank in ranks if rank >= len(roster.nodes)]
    return _no_member(roster, f"rank {strangers[0]}") if strangers else tuple(ranks)


def _one(roster: Roster, target: str) -> tuple[int, ...] | TargetRefused:
    """A rank before a name, a name before a node, a node before an address."""
    if _RANK.fullmatch(target) and int(target) < len(roster.nodes):
        return (int(target),)
    names = list(host_names(roster))
    for column in (names, roster.nodes, roster.addresses):
        found = tuple(rank for rank, each in enumerate(column) if each == target)
        if len(found) > 1:
            several = _shortened([names[rank] for rank in found])
            return TargetRefused(f"{target} has several members of this attempt ({several}); name one of them")
        if found:
            return found
    return _no_member(roster, target)


def _no_member(roster: Roster, target: str) -> TargetRefused:
    shown = target if len(target) <= LONGEST_SHOWN else target[:LONGEST_SHOWN] + "…"
    members = _listed(list(host_names(roster)), roster.roles)
    return TargetRefused(f"{visible(shown) or 'an empty name'} is no member of this attempt (members: {members})")


def _listed(names: Sequence[str], roles: Sequence[str]) -> str:
    """Names in few words: `chief-0, worker-0 … worker-3`."""
    rows = groupby(range(len(names)), roles.__getitem__)
    return _shortened([word for _, row in rows for word in _row([names[rank] for rank in row])])


def _row(names: Sequence[str]) -> Sequence[str]:
    return (f"{names[0]} … {names[-1]}",) if len(names) > SHORT_ROW else names


def _shortened(words: Sequence[str]) -> str:
    return ", ".join((*words[:MOST_LISTED], "…") if len(words) > MOST_LISTED else words)
