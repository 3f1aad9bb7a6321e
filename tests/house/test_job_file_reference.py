"""The page about the job file says what the models say, and every job in it loads."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from muster.domain.jobs.rules.job_values import RESERVED_ENV, RESERVED_PREFIX
from muster.jobfile import load_job
from muster.jobfile.models import JobKeys
from muster.jobfile.reference import BEGIN, END, refreshed
from muster.jobfile.section import keys_of

PAGE = Path(__file__).parents[2] / "docs" / "job-file.md"
JOBS = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)


def test_the_tables_of_keys_are_fresh() -> None:
    remedy = "run: python -m muster.jobfile.reference --write docs/job-file.md"
    assert PAGE.read_text() == refreshed(PAGE.read_text()), remedy


def test_a_stale_page_is_seen() -> None:
    page = PAGE.read_text().replace("`max_per_node`", "`most_per_node`")
    assert refreshed(page) != page


def test_the_tables_list_every_key_of_a_job() -> None:
    made = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    assert [key for key in keys_of(JobKeys) if f"| `{key}` |" not in made] == []


@pytest.mark.parametrize("job", JOBS, ids=[re.findall(r"^name: (.+)$", job, re.MULTILINE)[0] for job in JOBS])
def test_every_job_on_the_page_loads(job: str) -> None:
    load_job(job, "docs/job-file.md")


def test_the_page_has_its_worked_examples() -> None:
    specs = [load_job(job, "docs/job-file.md") for job in JOBS]
    assert [(spec.name, spec.size) for spec in specs] == [
        ("hello", 3),
        ("finetune", 1),
        ("ddp", 4),
        ("rl", 17),
        ("parameter-server", 3),
    ]


def test_the_page_names_every_variable_that_cannot_be_set() -> None:
    words = set(re.findall(r"`([A-Z_]+)`", PAGE.read_text()))
    assert {*RESERVED_ENV, RESERVED_PREFIX} <= words


def test_no_variable_that_muster_sets_can_be_set_by_a_job() -> None:
    page = (PAGE.parent / "roster.md").read_text()
    fixed = page.partition("## Environment variables")[2].partition("Defaults that the image or the job may replace")[0]
    named = {name for row in re.findall(r"^\| (`.+?) \|", fixed, re.MULTILINE) for name in re.findall(r"[A-Z_]+", row)}
    assert {name for name in named if not name.startswith(RESERVED_PREFIX)} - {"NAME"} == RESERVED_ENV


def test_the_page_is_refreshed_in_place(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    subprocess.run([sys.executable, "-m", "muster.jobfile.reference", "--write", str(page)], check=True)
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n\n### The job\n")
    assert text.endswith(f"\n{END}\nafter\n")
    assert "old" not in text.splitlines()


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="has no part between"):
        refreshed("nothing")
