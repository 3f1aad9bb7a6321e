"""The depot as services see it, and the trees in it that jobs name."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from muster.domain.data.depot_use import DepotUse
from muster.domain.errors import InvalidJobError, UnavailableError
from muster.domain.jobs.job import JobSpec, Role


class DepotSide(Protocol):
    """The coordinator's connection to the depot."""

    use: DepotUse | None
    """What the depot held when it was looked through last; None: it was not looked through yet."""

    @property
    def address(self) -> str | None:
        """HOST:PORT of the depot, with an empty host for that of the coordinator; None: there is no depot now."""
        ...

    @property
    def expected(self) -> bool:
        """Whether the fleet has a depot, which may be away just now."""
        ...

    def put_ticket(self, *, project: str, account: str, room: int, limit: int, now: datetime) -> str:
        """What a client shows that sends objects, so many bytes at most; `limit`: of what its project keeps in all."""
        ...

    def get_ticket(self, tree: str, *, project: str, account: str, now: datetime) -> str:
        """What a node or client shows that fetches a tree."""
        ...

    async def keep(self, trees: Collection[str]) -> frozenset[str]:
        """Have trees kept that jobs are about to name; those that the depot does not have. Raises UnavailableError."""
        ...


def depot_there(depot: DepotSide | None) -> tuple[DepotSide, str]:
    """The depot and its address; raises UnavailableError where there is none now."""
    address = None if depot is None else depot.address
    if depot is None or address is None:
        raise UnavailableError(
            "no depot is connected to the coordinator, so jobs cannot bring code along or take outputs of others: "
            "start muster-depot on its machine (docs/depot.md)"
        )
    return depot, address


def trees_of(spec: JobSpec) -> frozenset[str]:
    """The trees that a job names."""
    return frozenset[str]().union(*map(trees_of_role, spec.roles))


def trees_of_role(role: Role) -> frozenset[str]:
    """The trees that an execution of a role finds."""
    code = [role.code.tree] if role.code is not None and role.code.tree else []
    return frozenset([*code, *input_trees(role)])


def input_trees(role: Role) -> frozenset[str]:
    """The trees that are inputs of a role."""
    return frozenset(tree.tree for each in role.inputs for tree in each.trees)


def without_fetched_code(spec: JobSpec) -> JobSpec:
    """The job without what a client says of trees of repositories: nobody but its nodes fetches those."""
    if not any(role.code is not None and role.code.git is not None and role.code.tree for role in spec.roles):
        return spec
    roles = (
        replace(role, code=replace(role.code, tree="", size=0))
        if role.code is not None and role.code.git is not None
        else role
        for role in spec.roles
    )
    return replace(spec, roles=tuple(roles))


async def missing_trees(depot: DepotSide | None, specs: Iterable[JobSpec]) -> frozenset[str]:
    """Trees of jobs on their way in that the depot does not have; it keeps the others until the jobs are known.

    Raises UnavailableError where the depot cannot be asked.
    """
    wanted = tuple(specs)
    trees = frozenset[str]().union(*map(trees_of, wanted))
    if any(role.code is not None and role.code.is_awaited for spec in wanted for role in spec.roles):
        depot_there(depot)  # what comes from a repository goes there
    if not trees:
        return trees
    there, _ = depot_there(depot)
    return await there.keep(trees)


def tree_is_missing(spec: JobSpec, missing: Collection[str]) -> InvalidJobError | None:
    """Why a job cannot be taken; None: the depot has all that it names."""
    for each in (each for role in spec.roles for each in role.inputs):
        if any(tree.tree in missing for tree in each.trees):
            return InvalidJobError(f"inputs.{each.name}: the depot does not have the outputs of {each.source} any more")
    for tree in sorted(trees_of(spec).intersection(missing)):
        return InvalidJobError(
            f"code: the depot does not have the tree {tree}, or not all of it; it removes what no job names. Send the "
            "folder again with `muster upload FOLDER`, or name it as `code: FOLDER`"
        )
    return None
