"""All of the section: a node that gets all data beside one that gets none, then eight nodes whose uplinks are slow."""

import os

from bench.data import attempts, folders, gang_inputs, inputs, repositories, stores, untouched
from bench.data.depot import depot, upload
from bench.data.origin import origin
from bench.fleet import PROCESSES, fleet
from bench.setting import Setting
from muster.domain.data.code import JobCode


async def measure(setting: Setting) -> None:
    """Folders, inputs, outputs and checkpoints of one node, then an input and a repository for eight."""
    await _measure_one_node(setting)
    await _measure_gang(setting)
    setting.scratch.fresh("data")


async def _measure_one_node(setting: Setting) -> None:
    await setting.quiet(f"data: {folders.FOLDER} is made, where it is missing, and sent for the first time")
    directory = setting.scratch.fresh("data")
    folder = folders.kept_folder(setting.scratch.path / "data-folder", folders.FILES)
    async with (
        fleet(setting.scratch, 2) as muster,
        depot(muster, directory) as kept,
        origin(setting.scratch.fresh("origin"), os.urandom(inputs.LARGE)) as served,
    ):
        await untouched.only(muster, untouched.MOVES)
        sent = await upload(muster, directory, folder)
        setting.findings.take(folders.FIRST, [sent.took / 1000], "s")
        setting.findings.absolute(folders.FIRST_BAR, folders.FIRST)
        code = JobCode(tree=sent.tree, size=sent.size, writable=False)
        await folders.measure_sending(setting, muster, folder, directory)
        await folders.measure_calls(setting, muster, directory / "calls")
        await inputs.measure_one(setting, muster, served, code, directory)
        await stores.measure_storing(setting, muster, directory)
        await attempts.measure_restart(setting, muster, kept, directory)
        await untouched.measure_without_data(setting, muster)


async def _measure_gang(setting: Setting) -> None:
    directory = setting.scratch.fresh("data")
    options = (*PROCESSES, "--peer-rate", str(gang_inputs.UPLINK))
    known = {"SSL_CERT_FILE": str(repositories.certificates(directory))}
    async with fleet(setting.scratch, gang_inputs.GANG, *options, **known) as muster:
        async with depot(muster, directory), repositories.repository(directory) as found:
            await repositories.measure_fetches(setting, muster, found)
        small = os.urandom(gang_inputs.SMALL)
        async with origin(setting.scratch.fresh("origin"), small, rate=gang_inputs.UPLINK) as served:
            await gang_inputs.measure_direct(setting, muster, served)
        large = os.urandom(gang_inputs.SHARED)
        async with origin(setting.scratch.fresh("origin"), large, rate=gang_inputs.UPLINK) as served:
            await gang_inputs.measure_gang(setting, muster, served, setting.scratch.path / "muster")
