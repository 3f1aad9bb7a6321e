"""The example that watches one training in every way: curl, server-sent events, a webhook, MQTT and Prometheus."""

import asyncio
import shutil
import sys

import pytest

from tests.house.generate_stubs import ROOT

OBSERVE = ROOT / "examples" / "observed" / "observe.py"
NEEDED = ("curl", "mosquitto", "mosquitto_sub", "prometheus")
ENDED_WITHIN = 300.0

pytestmark = pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason=f"{', '.join(NEEDED)} are not all installed")


async def test_all_who_watch_a_training_are_told_the_same() -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, str(OBSERVE), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(ENDED_WITHIN):
            output, _ = await program.communicate()
    finally:
        if program.returncode is None:
            program.terminate()
            await program.wait()

    said = output.decode()
    assert program.returncode == 0, said
    assert "rank 2: loss 2.303 -> 0." in said
    assert "\nmuster.job.running\n" in said
    assert 'muster_attempts_total{result="succeeded"} 1' in said
    assert "all have told of job" in said
