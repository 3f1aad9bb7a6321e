"""People sign in to the console in a real browser, and look at the list of jobs."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from muster.domain.jobs.view import JobView
from tests.browsers.seen_console import SeenConsole
from tests.browsers.visitor import Visitor, visitor
from tests.integration.jobs import shell

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def train(console: SeenConsole) -> Iterator[JobView]:
    """A job that runs on two nodes."""
    job = console.running(shell("sleep 600", workers=2, gpus=5, name="train", labels={"note": HOSTILE}))
    yield job
    console.stopped(job.id)


def test_a_token_signs_in_and_leads_to_where_one_wanted(person: Visitor, train: JobView) -> None:
    page = person.page
    page.goto(f"{person.console.url}/jobs?phase=running&q=train")
    page.get_by_label("API token").fill("wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("token")
    person.sign_in()
    expect(page).to_have_url(re.compile(r"/jobs\?phase=running&q=train$"))
    expect(page.get_by_role("row").filter(has_text=train.id)).to_contain_text("2 / 2")

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()


def test_the_list_shows_jobs_as_they_come_and_end(person: Visitor, train: JobView) -> None:
    page = person.open("/jobs")
    expect(page.get_by_role("row").filter(has_text=train.id)).to_contain_text("running")
    short = person.console.submitted(shell("exit 3", name="short"))
    row = page.get_by_role("row").filter(has_text=short.id)
    expect(row).to_contain_text("failed")
    expect(row).to_contain_text("exit code 3")

    page.get_by_role("button", name=re.compile("^failed")).click()
    expect(page).to_have_url(re.compile(r"phase=failed"))
    expect(page.get_by_role("row").filter(has_text=train.id)).to_have_count(0)
    page.keyboard.press("/")
    page.keyboard.type("no such job")
    expect(page.get_by_text("No job fits these filters")).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    expect(page.get_by_role("row").filter(has_text=train.id)).to_be_visible()


def test_keys_lead_through_the_list(person: Visitor, train: JobView) -> None:
    page = person.open(f"/jobs?q={train.id}")
    expect(page.get_by_role("row").filter(has_text=train.id)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Go to Jobs")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("j")
    expect(page.locator(".table-row.here")).to_contain_text(train.id)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/jobs/{train.id}$"))
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile("/jobs$"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nobody_is_kept_out_of_the_sign_in_and_the_list(person: Visitor, train: JobView, theme: str) -> None:
    person.paint(theme)
    person.page.goto(person.console.url)
    expect(person.page.get_by_label("API token")).to_be_visible()
    assert person.findings() == []
    page = person.open("/jobs")
    expect(page.get_by_role("row").filter(has_text=train.id)).to_be_visible()
    assert person.findings() == []


def test_a_narrow_window_has_the_same_jobs(browser: Browser, console: SeenConsole, train: JobView) -> None:
    with visitor(browser, console, width=360, height=640) as person:
        page = person.open("/jobs")
        expect(page.get_by_role("row").filter(has_text=train.id)).to_contain_text("running")
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        page.get_by_role("button", name="Menu").click()
        expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Jobs")).to_be_visible()
        assert person.findings() == []
        assert person.wrongs() == []
