"""Runs `async def` tests, each in an event loop of its own and with a limit in time; no property has one of its own."""

import asyncio
import gc
import inspect

import pytest
from hypothesis import HealthCheck, settings

LIMIT = 120.0
"""Seconds; a test that hangs fails with the line it hangs at instead of blocking the run."""

settings.register_profile("muster", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("muster")


def pytest_collection_finish() -> None:
    """What was imported for the tests stays: leave it out of searches for garbage, which took half of some tests."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine function to its end; other tests go their usual way."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}

    async def limited() -> None:
        async with asyncio.timeout(LIMIT):
            await pyfuncitem.obj(**arguments)

    asyncio.run(limited())
    return True
