"""The parts of the benchmarks can be started, by the names that the documents give them."""

import re

from bench.__main__ import SECTIONS
from bench.report import DOCS


def test_the_documents_name_only_parts_that_there_are() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    named = {name for names in re.findall(r"make bench ONLY=([a-z,]+)", text) for name in names.split(",")}
    assert "gangs" in named
    assert named <= set(SECTIONS)
