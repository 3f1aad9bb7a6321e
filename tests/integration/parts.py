"""What a coordinator is made of, at work in the process of a test; how it is reached is up to who serves it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from coordinator.engine.engine import Engine
from coordinator.rpc.services import Parts
from coordinator.service.known_projects import KnownProjects, make_default_project
from coordinator.store.logs.logs import LogStore
from coordinator.store.records.sql import SqlStore
from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.policies import Policies
from coordinator.trust.presets import Presets
from coordinator.trust.registry import Registry
from coordinator.trust.secrets.secrets import Secrets
from coordinator.trust.subscriptions import Subscriptions


@cache
def _new_database() -> bytes:
    """A database as a coordinator makes it, which takes a quarter of a second: once for all tests of a process."""
    with TemporaryDirectory() as directory:
        file = Path(directory, "coordinator.db")
        SqlStore.open(file).close()
        return file.read_bytes()


def place_new_database(directory: Path) -> None:
    """Lay a database into the directory of a coordinator that has none yet, as its first start would."""
    database = directory / "coordinator.db"
    if not database.exists():
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        database.touch(mode=0o600)
        database.write_bytes(_new_database())


@asynccontextmanager
async def working_parts(directory: Path, **more: Any) -> AsyncIterator[Parts]:
    """All parts with their state below a directory, the engine at work until the context ends."""
    database = directory / "coordinator.db"
    place_new_database(directory)
    store, logs, trust = SqlStore.open(database), LogStore(directory / "logs"), SqlTrust.open(database)
    try:
        engine = Engine(store, logs.drop_job)
        registry = Registry(trust, KnownProjects(engine))
        secrets = Secrets.open(trust, directory / "trust" / "secrets.key", registry.projects)
        parts = Parts(
            engine=engine,
            store=store,
            logs=logs,
            registry=registry,
            audit=AuditLog(registry),
            secrets=secrets,
            subscriptions=Subscriptions(trust, secrets, registry.projects),
            policies=Policies(trust, registry.projects),
            presets=Presets(trust, registry.projects),
            **more,
        )
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(parts.engine.run(), name="engine")
            await make_default_project(engine)
            yield parts
            working.cancel()
        await parts.audit.flush()
    finally:
        logs.close()
        trust.close()
        store.close()
