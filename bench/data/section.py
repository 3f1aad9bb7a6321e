"""All of the section: a node with a depot, then a gang of eight whose uplinks are slow."""

import os

from bench.data import folders, inputs
from bench.data.depot import depot, upload
from bench.data.origin import origin
from bench.fleet import PROCESSES, fleet
from bench.setting import Setting
from muster.domain.data.code import JobCode


async def measure(setting: Setting) -> None:
    """Folders and inputs on one node, then an input of eight."""
    await setting.quiet(f"data: {folders.FOLDER} is made, where it is missing, and sent for the first time")
    directory = setting.scratch.fresh("data")
    folder = folders.kept_folder(setting.scratch.path / "data-folder", folders.FILES)
    async with (
        fleet(setting.scratch, 1) as muster,
        depot(muster, directory),
        origin(setting.scratch.fresh("origin"), os.urandom(inputs.LARGE)) as served,
    ):
        sent = await upload(muster, directory, folder)
        setting.findings.take(folders.FIRST, [sent.took / 1000], "s")
        setting.findings.absolute(folders.FIRST_BAR, folders.FIRST)
        code = JobCode(tree=sent.tree, size=sent.size, writable=False)
        await folders.measure_sending(setting, muster, folder, directory)
        await folders.measure_calls(setting, muster, directory / "calls")
        await inputs.measure_one(setting, muster, served, code, directory)
    given = (*PROCESSES, "--peer-rate", str(inputs.UPLINK))
    async with (
        fleet(setting.scratch, inputs.GANG, *given) as muster,
        origin(setting.scratch.fresh("origin"), os.urandom(inputs.SHARED), rate=inputs.UPLINK) as served,
    ):
        await inputs.measure_gang(setting, muster, served)
    setting.scratch.fresh("data")
