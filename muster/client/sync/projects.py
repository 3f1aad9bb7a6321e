"""The synchronous form of `muster.client.services.projects`, made from it by `make sync`; change that one."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from muster.client.blocking.loop_thread import LoopThread
from muster.client.services.projects import PoolsClient, PresetsClient, ProjectsClient
from muster.domain.fleet.access import Permissions, Project
from muster.domain.fleet.policies.policy import JobPolicy, PolicyRule
from muster.domain.fleet.policies.preset import Preset, PresetKind
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import UnitChange
from muster.domain.fleet.standing_view import PoolView, QueuePage, UnitStandingView
from muster.domain.usage import UsageBy, UsageReport


class SyncProjectsClient:
    """Projects, reached as `client.projects`."""

    def __init__(self, own: ProjectsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def list(self) -> tuple[Project, ...]:
        """Projects that one may look at, by name.

        >>> names = [project.name for project in client.projects.list()]
        """
        return self._loop.run(self._own.list())

    def get(self, name: str) -> Project:
        """One project; UnknownNameError for one that one may not look at.

        >>> opened = (client.projects.get("vision")).permissions
        """
        return self._loop.run(self._own.get(name))

    def add(self, name: str) -> Project:
        """Make a project.

        >>> client.projects.add("vision")
        """
        return self._loop.run(self._own.add(name))

    def allow(self, project: str, permissions: Permissions) -> Project:
        """Open a project for this and nothing else; the project.

        >>> client.projects.allow("vision", Permissions(host_paths=("/data",)))
        """
        return self._loop.run(self._own.allow(project, permissions))

    def limit_storage(self, project: str, storage: int) -> Project:
        """Say how many bytes a project may keep in the fleet's depot; what is there stays.

        >>> client.projects.limit_storage("vision", 200 * 2**30)
        """
        return self._loop.run(self._own.limit_storage(project, storage))

    def remove(self, name: str) -> Project:
        """Forget a project that nothing uses; the project as it was. Its jobs that have ended stay.

        Raises ConflictError with what uses it, and what to do about each: jobs that have not ended, secrets, access of
        accounts, tokens.

        >>> client.projects.remove("vision")
        """
        return self._loop.run(self._own.remove(name))

    def policies(self, project: str) -> tuple[JobPolicy, ...]:
        """The policies that jobs of a project keep, that of the fleet first; `*`: only that of the fleet.

        >>> rules = {each.project: each.rules for each in client.projects.policies("vision")}
        """
        return self._loop.run(self._own.policies(project))

    def set_policy(self, project: str, rules: Mapping[str, PolicyRule]) -> JobPolicy:
        """Say what jobs of a project may say, or with `*` those of the fleet; without rules they may say anything.

        Jobs that were accepted stay what they were. Raises InvalidJobError for rules that no job file has a key for.

        >>> client.projects.set_policy("vision", {"workers": PolicyRule(max="16")})
        """
        return self._loop.run(self._own.set_policy(project, rules))

    def quotas(self) -> tuple[UnitStandingView, ...]:
        """Projects that one may look at and their departments: what they may have and what they hold, by name.

        >>> held = {view.unit.name: view.pools for view in client.projects.quotas()}
        """
        return self._loop.run(self._own.quotas())

    def set_quotas(self, changes: Sequence[UnitChange]) -> tuple[str, ...]:
        """Make all of these changes or none; warnings about what cannot be kept of them.

        Raises ConflictError where a unit is other than `before` says.

        >>> known = [view.unit for view in client.projects.quotas()]
        >>> client.projects.set_quotas(planned(known, wanted))
        """
        return self._loop.run(self._own.set_quotas(changes))

    def queue(self, *, project: str = "", pool: str = "", page: str = "") -> QueuePage:
        """Queued jobs in the order in which they are tried, at most a thousand; `page` is where to go on.

        >>> first = (client.projects.queue(project="vision")).lines
        """
        return self._loop.run(self._own.queue(project=project, pool=pool, page=page))

    def usage(
        self,
        *,
        by: UsageBy = UsageBy.PROJECT,
        since: datetime | None = None,
        until: datetime | None = None,
        project: str = "",
        pool: str = "",
    ) -> UsageReport:
        """What was used of GPUs, CPUs and memory in a span of time, also by jobs that are deleted; the largest first.

        >>> report = client.projects.usage(by=UsageBy.USER, since=datetime.now(UTC) - timedelta(days=7))
        """
        return self._loop.run(self._own.usage(by=by, since=since, until=until, project=project, pool=pool))


class SyncPresetsClient:
    """Presets, reached as `client.presets`: fragments of job files; those of the project `*` are of the fleet."""

    def __init__(self, own: PresetsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def put(self, preset: Preset) -> Preset:
        """Keep the next version of a preset; what the newest one says already is given back as it is.

        Raises InvalidJobError for what no job file has a key for, and for what a policy would refuse.

        >>> image = {"image": "registry.local/pt:2.9", "env": {"NCCL_DEBUG": "WARN"}}
        >>> wish = Preset(project="vision", kind=PresetKind.ENVIRONMENT, name="pytorch-2.9", document=image)
        >>> made = client.presets.put(wish)
        """
        return self._loop.run(self._own.put(preset))

    def get(self, kind: PresetKind, name: str, *, version: int = 0, project: str = "") -> Preset:
        """One version of the preset that jobs of a project mean by a name: its own, else that of the fleet.

        `version` 0 is the newest.

        >>> document = (client.presets.get(PresetKind.ENVIRONMENT, "pytorch-2.9", project="vision")).document
        """
        return self._loop.run(self._own.get(kind, name, version=version, project=project))

    def list(self, project: str = "") -> tuple[Preset, ...]:
        """The newest version of each preset that jobs of a project may use, its own first; `*`: those of the fleet.

        >>> names = [f"{each.kind} {each.name}" for each in client.presets.list("vision")]
        """
        return self._loop.run(self._own.list(project))

    def history(self, kind: PresetKind, name: str, *, project: str = "") -> tuple[Preset, ...]:
        """All versions of a preset, the newest first.

        >>> notes = [each.note for each in client.presets.history(PresetKind.TEMPLATE, "ddp", project="vision")]
        """
        return self._loop.run(self._own.history(kind, name, project=project))

    def remove(self, kind: PresetKind, name: str, *, project: str = "") -> None:
        """Forget all versions of a preset; jobs that were made with it stay what they are.

        >>> client.presets.remove(PresetKind.TEMPLATE, "ddp", project="vision")
        """
        self._loop.run(self._own.remove(kind, name, project=project))


class SyncPoolsClient:
    """Pools, reached as `client.pools`."""

    def __init__(self, own: PoolsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def list(self) -> tuple[PoolView, ...]:
        """All pools by name, those that are set and those that have nodes, with what they have.

        >>> nodes = {view.pool.name: view.nodes for view in client.pools.list()}
        """
        return self._loop.run(self._own.list())

    def put(self, pool: Pool, *, anyway: bool = False) -> tuple[str, ...]:
        """Set a pool, in place of what was said of it; warnings, a sentence each.

        Raises ConflictError where its selector takes no node, unless it is to be set `anyway`.

        >>> client.pools.put(Pool(name="h100", selector={"gpu": "h100"}, longest_run=timedelta(days=3)))
        """
        return self._loop.run(self._own.put(pool, anyway=anyway))

    def remove(self, name: str) -> tuple[str, ...]:
        """Say nothing of a pool any longer, so that its nodes are in another one; warnings, a sentence each.

        >>> client.pools.remove("h100")
        """
        return self._loop.run(self._own.remove(name))
