"""The containers of one engine, from their making to their removal."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence

from aiohttp import ClientTimeout

from agent.core.containers.spec import Body
from agent.runtimes.docker.answers import ContainerState
from agent.runtimes.docker.engine.connection import (
    AWAY_LIMIT,
    CALL_LIMIT,
    EngineAwayError,
    EngineConnection,
    EngineError,
    body_of,
    in_our_words,
    whole,
)
from agent.runtimes.docker.engine.starts import Starts
from muster.domain.gangs.log import Stream

EVENT_DELAY = 2.0
"""Seconds within which an engine that has ended a container tells of it; a moment later is usual."""

NANOSECONDS = 1_000_000_000
"""Nanoseconds of a second, in which engines count the use of CPUs."""
_NEVER = "0001-01-01T00:00:00Z"


class EngineContainers:
    """The containers of one engine by id or name."""

    def __init__(self, connection: EngineConnection, starts: Starts) -> None:
        """`starts`: where it is noted what is being started."""
        self._connection = connection
        self._starts = starts

    async def create(self, name: str, body: Body) -> str:
        """The id of a new container. Cancelled, it first waits for the engine's answer: then it can be removed."""
        return (
            await self._connection.call(lambda: whole(self._connection.docker.containers.create(body, name=name)))
        ).id

    async def start(self, container: str) -> None:
        """Start a container that never was. When the engine goes in the middle, it is asked before trying again."""
        while True:
            try:
                with in_our_words(), self._starts.one():
                    return await whole(self._connection.docker.containers.container(container).start())
            except EngineAwayError:
                if (await self.state(container)).started:
                    return None

    async def run_beside(
        self, container: str, command: Sequence[str], env: Mapping[str, str], patience: float = AWAY_LIMIT
    ) -> None:
        """Start a command in a container that runs, as its user; what it prints goes nowhere. Raises EngineError."""
        handle = self._connection.docker.containers.container(container)
        beside = await self._connection.call(
            lambda: handle.exec(command, stdout=False, stderr=False, environment=dict(env)), patience
        )
        await self._connection.call(lambda: beside.start(detach=True, timeout=CALL_LIMIT), patience)

    async def state(self, container: str, patience: float = AWAY_LIMIT) -> ContainerState:
        """How a container is, by id or name."""
        found = await self._connection.call(
            lambda: self._connection.docker.containers.container(container).show(), patience
        )
        state = found["State"]
        networks = (found["NetworkSettings"].get("Networks") or {}).values()
        return ContainerState(
            id=found["Id"],
            started=state["StartedAt"] != _NEVER,
            running=state["Running"],
            exit_code=state["ExitCode"],
            out_of_memory=state["OOMKilled"],
            memory_limited=found["HostConfig"]["Memory"] > 0,
            address=next((network["IPAddress"] for network in networks if network["IPAddress"]), ""),
            user=found["Config"]["User"],
            command=(*(found["Config"].get("Entrypoint") or ()), *(found["Config"].get("Cmd") or ())),
            pid=state["Pid"],
            dated=state["FinishedAt"] != _NEVER,
        )

    async def cpu_seconds(self, container: str, patience: float = AWAY_LIMIT) -> float | None:
        """Seconds of CPU that all processes of a container have used; None: the engine does not say."""
        params = {"stream": "false", "one-shot": "true"}
        found = await self._connection.call(
            lambda: self._connection.docker._query_json(f"containers/{container}/stats", params=params),  # noqa: SLF001 - the public call waits a second for a second sample
            patience,
        )
        used = found.get("cpu_stats", {}).get("cpu_usage", {}).get("total_usage")
        return None if used is None else float(used) / NANOSECONDS

    async def wait(self, container: str) -> None:
        """Wait until a started container has ended, without limit in time; EngineAwayError when the engine goes."""
        with in_our_words():
            await self._connection.docker.containers.container(container).wait()

    async def seen_end(self, container: str) -> int | None:
        """The exit code of the first end that this engine saw; None: it was away then, or has forgotten it.

        An engine that is told to stop what had ended unseen tells of two ends; the exit code of the second is made up.
        """
        filters = json.dumps({"container": [container], "event": ["die"]})
        params = {"since": "0", "until": f"{time.time() + EVENT_DELAY:.3f}", "filters": filters}
        return await self._connection.call(lambda: self._first_end(params))

    async def _first_end(self, params: Mapping[str, str]) -> int | None:
        query = self._connection.docker._query("events", params=params)  # noqa: SLF001 - the public way never ends
        told = b""
        async with query as answer, contextlib.aclosing(body_of(answer)) as chunks:
            async for chunk in chunks:
                told += chunk
                if b"\n" in told:
                    break
        return int(json.loads(told.splitlines()[0])["Actor"]["Attributes"]["exitCode"]) if told else None

    async def deserted(self, container: str) -> bool:
        """Whether no process is left in a container that counts as running.

        Where what watched the container is gone, too, containerd does not know it any more, and the engine refuses.
        """
        try:
            found = await self._connection.call(
                lambda: self._connection.docker._query_json(f"containers/{container}/top")  # noqa: SLF001 - there is no public call for it
            )
        except EngineError as error:
            if error.not_found:
                return True
            raise
        return not found["Processes"]

    async def rouse(self, container: str) -> None:
        """Make an engine see that a container has ended; it does when it is told to kill what is not there."""
        await self._connection.call(self._connection.docker.containers.container(container).kill)

    async def stop(self, container: str, grace: int) -> None:
        """Ask its first process to end, and kill all of it after `grace` seconds; harmless when nothing runs."""
        limit = ClientTimeout(total=grace + CALL_LIMIT)
        await self._connection.call(
            lambda: self._connection.docker.containers.container(container).stop(t=grace, timeout=limit)
        )

    async def signal(self, container: str, signal: str) -> None:
        """Send a signal to its first process; harmless when nothing runs. Raises EngineError."""
        handle = self._connection.docker.containers.container(container)
        try:
            await self._connection.call(lambda: handle.kill(signal=f"SIG{signal}"))
        except EngineError as error:
            if not error.conflict:  # it does not run any more
                raise

    async def kill_after(self, container: str, seconds: float) -> None:
        """Wait for its end, and kill all of it if that has not come by then; harmless when nothing runs."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.wait(container)
                return
        # A stop without grace sends SIGTERM first, which the program may still hear.
        await self.signal(container, "KILL")

    async def remove(self, container: str) -> None:
        """Kill and remove a container with its anonymous volumes; harmless when it is not there."""
        limit = ClientTimeout(total=CALL_LIMIT)
        handle = self._connection.docker.containers.container(container)
        try:
            await self._connection.call(lambda: handle.delete(force=True, v=True, timeout=limit))
        except EngineError as error:
            if error.not_found:
                return
            if not error.conflict:
                raise
            await self._removed_elsewhere(container)

    async def _removed_elsewhere(self, container: str) -> None:
        """Wait for the end of a removal that another client began."""
        limit = ClientTimeout(total=CALL_LIMIT)
        handle = self._connection.docker.containers.container(container)
        try:
            await self._connection.call(lambda: handle.wait(condition="removed", timeout=limit))
        except EngineError as error:
            if not error.not_found:
                raise

    async def find(self, labels: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Id and labels of every container, running or not, that carries all these labels."""
        filters = json.dumps({"label": [f"{name}={value}" for name, value in labels.items()]})
        found = await self._connection.call(
            lambda: self._connection.docker.containers.list(all="true", filters=filters)
        )
        return [(container.id, container["Labels"]) for container in found]

    async def images(self) -> frozenset[str]:
        """The images of all containers, running or not, whoever has made them."""
        found = await self._connection.call(lambda: self._connection.docker.containers.list(all="true"))
        return frozenset(container["ImageID"] for container in found)

    async def output(self, container: str, stream: Stream, since: str | None) -> AsyncGenerator[bytes, None]:
        """What a container printed to one stream from `since` on, and prints, until it ends or the engine goes."""
        wanted = {each: "1" if each is stream else "0" for each in Stream}
        params = {"stdout": wanted[Stream.STDOUT], "stderr": wanted[Stream.STDERR], "follow": "1", "timestamps": "1"}
        if since is not None:
            params["since"] = since
        with in_our_words():
            query = self._connection.docker._query(  # noqa: SLF001 - the public way merges both streams and decodes them
                f"containers/{container}/logs", params=params, timeout=ClientTimeout(total=None)
            )
            async with query as answer, contextlib.aclosing(body_of(answer)) as chunks:
                async for chunk in chunks:
                    yield chunk
