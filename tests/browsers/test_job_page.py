"""People look at a job in a real browser: what it prints, where it runs, why it waits or has failed; and end it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browsers.visitor import Visitor
from tests.integration.jobs import shell

HOSTILE = "<img src=x onerror=alert(1)>"
PRINTING = rf"printf '\033[31mloss 0.5\033[0m {HOSTILE}\n'; exec sleep 600"


def test_a_job_shows_its_lines_its_ranks_and_its_file_and_can_be_stopped(person: Visitor) -> None:
    job = person.console.running(shell(PRINTING, workers=2, gpus=1, name="printing"))
    page = person.open(f"/jobs/{job.id}")
    expect(page.get_by_role("heading", level=1)).to_have_text("printing")
    expect(page.get_by_role("img", name=re.compile("Rank 1 on gpu-.: image, inputs"))).to_be_visible()
    expect(page.get_by_role("img", name="Rank 1: running")).to_be_visible()

    page.keyboard.press("l")
    log = page.get_by_role("log")
    expect(log).to_contain_text(HOSTILE)
    expect(log.locator(".ansi-1").first).to_have_text("loss 0.5")
    page.get_by_label("Rank").select_option("1")
    expect(log.locator(".log-line")).to_have_count(1)
    page.get_by_label("Search the log").fill("LOSS")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 of 1")).to_be_visible()
    expect(page).to_have_url(re.compile(r"tab=logs&rank=1&find=LOSS$"))

    tabs = page.get_by_role("navigation", name="Parts of the job")
    tabs.get_by_role("link", name="Ranks").click()
    expect(page.get_by_role("row").filter(has_text="worker")).to_have_count(2)
    tabs.get_by_role("link", name="Events").click()
    expect(page.get_by_text("submitted by")).to_be_visible()
    tabs.get_by_role("link", name="Job file").click()
    expect(page.get_by_role("region", name="Job file")).to_contain_text("name: printing")

    page.get_by_role("button", name="Stop").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("It ends 2 executions")
    question.get_by_role("button", name="Stop the job").click()
    expect(page.locator(".job-head")).to_contain_text("stopped")
    expect(page.get_by_role("button", name="Delete")).to_be_visible()


def test_a_job_that_waits_says_why_and_one_that_has_failed_how(person: Visitor) -> None:
    waits = person.console.do(
        lambda client: client.jobs.submit(shell("true", gpus=8, workers=9, name="waits"), queue_anyway=True)
    )
    page = person.open("/jobs/waits")
    expect(page).to_have_url(re.compile(f"/jobs/{waits.id}$"))
    expect(page.get_by_role("region", name="Why it waits")).to_contain_text("needs room for 9 executions")
    person.console.stopped(waits.id)
    expect(page.locator(".job-head")).to_contain_text("stopped")

    failed = person.console.submitted(shell("echo no such file >&2; exit 3", name="failing"))
    page = person.open(f"/jobs/{failed.id}")
    expect(page.get_by_role("region", name="The last lines of rank 0")).to_contain_text("no such file")
    page.goto(f"{person.console.url}/jobs/nobody")
    expect(page.get_by_role("alert")).to_contain_text("nobody")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nobody_is_kept_out_of_a_job(person: Visitor, theme: str) -> None:
    person.paint(theme)
    job = person.console.running(shell(PRINTING, workers=2, name=f"seen-{theme}"))
    page = person.open(f"/jobs/{job.id}")
    expect(page.get_by_role("log")).to_contain_text("loss")
    found = {"summary": person.findings()}
    for tab in ("logs", "ranks", "events", "file"):
        page.goto(f"{person.console.url}/jobs/{job.id}?tab={tab}")
        expect(page.locator(".log-line, .table-row, .events li, .file").first).to_be_visible()
        found[tab] = person.findings()
    person.console.stopped(job.id)
    assert {tab: findings for tab, findings in found.items() if findings} == {}
