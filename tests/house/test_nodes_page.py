"""docs/nodes.md has every check."""

import re

from tests.house.generate_stubs import ROOT


def test_every_finding_stands_in_the_page_about_nodes() -> None:
    sources = [*(ROOT / "muster/bootstrap").rglob("*.py"), ROOT / "muster/cli/commands/nodes/bootstrap_run.py"]
    calls = re.compile(r'(?:_ok|_warn|_error)\(\s*"([a-z.-]+)"|\bid="([a-z.-]+)"|\("(disk\.[a-z]+)", "/')
    used = {name for source in sources for found in calls.findall(source.read_text()) for name in found if name}
    told = set(re.findall(r"^\| `([a-z][a-z.-]+)` \|", (ROOT / "docs/nodes.md").read_text(), re.MULTILINE))
    assert len(used) > 20
    assert told == used
