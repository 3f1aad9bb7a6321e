"""Carries out a plan on one computer, and undoes what it did if it does not get to the end."""

import asyncio
import secrets
import shlex
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from muster.bootstrap.inspect.facts import Installed
from muster.bootstrap.installation.plan import UNIT, Join, MachinePlan
from muster.bootstrap.installation.registry import LOOK_AGAIN, NodeRegistry, dismiss
from muster.bootstrap.request import CONFIG
from muster.bootstrap.ssh.executor import TRANSFER, CommandFailedError, Shell
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.fleet.node import NodeState, NodeView

INSTALL_LIMIT = 600.0
"""Seconds for the installer; it copies wheels, which a slow disk makes long."""
READY_WITHIN = 90.0
"""Seconds from the start of the agent until the coordinator has heard from it."""
UNDO_LIMIT = 120.0
"""Seconds that each step back may take."""

_JOINED = "/var/lib/muster/agent/trust/node.json"
_TRACES = (
    "/opt/muster /etc/muster/agent.toml /etc/muster/join-token /var/lib/muster/agent "
    f"/etc/systemd/system/{UNIT}.service"
)

Tell = Callable[[str], None]
"""Hears what is being done now."""


class InstallationError(MusterError):
    """An installation did not get to its end; `left` says what of it is still there."""

    def __init__(self, message: str, left: tuple[str, ...]) -> None:
        super().__init__(message)
        self.left = left


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallOrder:
    """What is to be installed where."""

    shell: Shell
    bundle: Path
    version: str
    plan: MachinePlan
    before: Installed
    """What was installed when the probe looked."""


class Installation:
    """One plan on one computer; `run` leaves it as wished for, or as it was."""

    def __init__(self, order: InstallOrder, registry: NodeRegistry, tell: Tell) -> None:
        self._order = order
        self._shell = order.shell
        self._registry = registry
        self._tell = tell
        self._stage = ""
        self._undo: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        self._left: list[str] = []

    async def run(self) -> NodeView:
        """The node, once the coordinator has heard from it.

        Raises InstallationError; when it is cancelled, it undoes what it did before it ends.
        """
        try:
            return await self._install()
        except asyncio.CancelledError:
            self._tell("interrupted, goes back")
            await self._go_back()
            raise
        except MusterError as error:
            self._tell("failed, goes back")
            await self._go_back()
            raise InstallationError(str(error), tuple(self._left)) from error
        finally:
            await self._clear_up()

    @property
    def left(self) -> tuple[str, ...]:
        """What is still there of an installation that was interrupted."""
        return tuple(self._left)

    async def _install(self) -> NodeView:
        order = self._order
        # Named here and not there, so that it is known even if the answer gets lost.
        self._stage = f"/var/tmp/muster-{secrets.token_hex(8)}"  # noqa: S108 - must be new, or mkdir fails
        await self._shell.must(f"mkdir -m 700 {self._stage}")
        await self._send()
        options = ["agent"]
        seen = await self._registry.node(order.plan.name)
        if order.plan.config is not None:
            await self._shell.put(order.plan.config.encode(), f"{self._stage}/agent.toml", mode=0o600)
            options += ["--config-from", f"{self._stage}/agent.toml"]
        if order.plan.join is not None:
            options += ["--join-file", await self._admit(order.plan.join)]
        self._tell(f"installs {order.version}")
        await self._keep_what_is_there()
        await self._run_installer(*options)
        return await self._await_ready(seen)

    async def _send(self) -> None:
        self._tell("sends the bundle")
        archive = f"{self._stage}/bundle.tar"
        await self._shell.put(self._order.bundle, archive, mode=0o600)
        self._tell("unpacks the bundle")
        command = f"mkdir {self._stage}/bundle && tar -xof {archive} -C {self._stage}/bundle && rm {archive}"
        await self._shell.must(command, limit=TRANSFER)

    async def _admit(self, join: Join) -> str:
        secret, token = await self._registry.admit(join.labels)
        self._undo.append((f"the join token {token}", lambda: self._registry.withdraw(token)))
        file = f"{self._stage}/join-token"
        await self._shell.put(f"{secret}\n".encode(), file, mode=0o600)
        if join.again:
            # With what it has it would knock at a door that is closed to it.
            self._undo.append((_JOINED, self._restore_membership))
            await self._shell.must(f"systemctl stop {UNIT}; mv -f {_JOINED} {_JOINED}.before")
        self._undo.append((f"the node {join.name}", lambda: dismiss(self._registry, join.name)))
        return file

    async def _keep_what_is_there(self) -> None:
        if self._order.before.config is None:
            self._undo.append(("what the installer made", self._uninstall))
            return
        await self._shell.must(f"cp -p {CONFIG} {self._stage}/before.toml")
        self._undo.append(("the new version", self._put_back))

    async def _run_installer(self, *options: str) -> None:
        words = shlex.join(("sh", f"{self._stage}/bundle/install.sh", *options))
        # Its process group is noted: a broken connection does not end it. Then it looks whether it was given up.
        note = f"read -r _ _ _ _ group _ </proc/self/stat && echo $group >{self._stage}/group"
        output = await self._shell.root(f"{note} && [ ! -e {self._stage}/ended ] && exec {words}", limit=INSTALL_LIMIT)
        if output.code:
            raise CommandFailedError(f"the installer failed: {output.last_words}")

    async def _await_ready(self, seen: NodeView | None) -> NodeView:
        self._tell("waits until it is ready")
        name = self._order.plan.name
        try:
            async with asyncio.timeout(READY_WITHIN):
                while not self._is_ready(  # noqa: ASYNC110 - nobody tells when
                    view := await self._registry.node(name), seen
                ):
                    await asyncio.sleep(LOOK_AGAIN)
        except TimeoutError:
            raise UnavailableError(
                f"{name} is not ready after {READY_WITHIN:g} s; its agent says: {await self._last_words()}"
            ) from None
        assert view is not None
        return view

    def _is_ready(self, view: NodeView | None, seen: NodeView | None) -> bool:
        if view is None or view.state is not NodeState.READY or view.agent_version != self._order.version:
            return False
        return seen is None or seen.state is not NodeState.READY or view.last_seen_at != seen.last_seen_at

    async def _last_words(self) -> str:
        output = await self._shell.root(f"journalctl -u {UNIT} -n 3 -o cat --no-pager")
        return output.last_words

    # ---- back

    async def _go_back(self) -> None:
        await self._end_installer()
        while self._undo:
            what, undo = self._undo.pop()
            try:
                async with asyncio.timeout(UNDO_LIMIT):
                    await undo()
            except (MusterError, TimeoutError) as error:
                self._left.append(f"{what}: {error or 'no answer'}")

    async def _end_installer(self) -> None:
        """What was started there runs on when its connection breaks; nothing is undone beside it.

        One that is only on its way notes its group before it looks for `ended`, so either it or this sees the other.
        """
        if not self._stage:
            return
        group = f"{self._stage}/group"
        # Without `--` before the group, which dash takes for a number and refuses.
        command = (
            f"touch {self._stage}/ended; [ -s {group} ] || exit 0; "
            f"group=$(cat {group}); kill -TERM -$group 2>/dev/null || exit 0; n=0; "
            "while kill -0 -$group 2>/dev/null && [ $n -lt 100 ]; do sleep 0.2; n=$((n + 1)); done; "
            "kill -KILL -$group 2>/dev/null; exit 0"
        )
        with suppress(MusterError):
            await self._shell.root(command)

    async def _uninstall(self) -> None:
        before = self._order.before
        installer = f"{self._stage}/bundle/install.sh"
        if before.version is not None:
            role = "coordinator" if before.coordinator else "cli"
            await self._quietly(f"[ {shlex.quote(before.version)} = {_IN_USE} ] || sh {installer} --rollback {role}")
        await self._shell.must(f"sh {installer} remove agent --purge", limit=UNDO_LIMIT)
        if before.version is None:
            traces = await self._shell.must(f"ls -d {_TRACES} 2>/dev/null || true")
            self._left.extend(traces.split())

    async def _put_back(self) -> None:
        before, stage = self._order.before, self._stage
        version = shlex.quote(str(before.version))
        now = (await self._shell.must(f"printf %s {_IN_USE}")).strip()
        await self._shell.must(
            f"changed=; cmp -s {stage}/before.toml {CONFIG} || {{ cp -p {stage}/before.toml {CONFIG}; changed=1; }}; "
            f"if [ {shlex.quote(now)} != {version} ]; then sh {stage}/bundle/install.sh --rollback agent; "
            f'elif [ -n "$changed" ]; then systemctl restart {UNIT}; fi',
            limit=UNDO_LIMIT,
        )
        if now != before.version:
            self._left.append(f"/opt/muster/{now}, which is not in use")

    async def _restore_membership(self) -> None:
        start = f"; systemctl start {UNIT}" if self._order.before.unit == "active" else ""
        await self._quietly(f"! [ -e {_JOINED}.before ] || mv {_JOINED}.before {_JOINED}{start}")

    async def _quietly(self, command: str) -> None:
        await self._shell.root(command, limit=UNDO_LIMIT)

    async def _clear_up(self) -> None:
        if self._stage:
            with suppress(MusterError):
                await self._shell.root(f"rm -rf {self._stage} {_JOINED}.before")


_IN_USE = '"$(basename "$(readlink /opt/muster/current)")"'
