"""The commands of docs/rest.md are run as they stand there."""

import asyncio
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.house.generate_stubs import ROOT
from tests.integration.consoles import console
from tests.integration.fleet import SECRET, running_fleet

TESTED = re.compile(r"<!-- tested -->\n```sh\n(.*?)```", re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    blocks = TESTED.findall((ROOT / "docs" / "rest.md").read_text())
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served:
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-euo", "pipefail", "-c", "\n".join(blocks)),
            cwd=tmp_path,
            env={**os.environ, "URL": served.url, "TOKEN": SECRET},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await shell.communicate()
        assert shell.returncode == 0, said.decode()
    assert b'"loss":0.5' in said
    assert b"event: end" in said
