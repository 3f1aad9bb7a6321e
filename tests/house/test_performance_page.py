"""docs/performance.md shows what docs/performance.json says, and nothing that somebody wished for."""

import json

from bench.report import DOCS, series_page, with_measured


def test_the_page_shows_what_was_measured() -> None:
    page = (DOCS / "performance.md").read_text(encoding="utf-8")
    found = json.loads((DOCS / "performance.json").read_text(encoding="utf-8"))
    assert with_measured(page, found) == page, "make bench WRITE_DOCS=1 writes it"
    assert series_page(found) == (DOCS / "performance" / "series.md").read_text(encoding="utf-8")


def test_every_chart_of_the_page_is_there() -> None:
    page = (DOCS / "performance.md").read_text(encoding="utf-8")
    charts = [part.partition(")")[0] for part in page.split("](performance/")[1:]]
    assert [chart for chart in charts if not (DOCS / "performance" / chart).exists()] == []
