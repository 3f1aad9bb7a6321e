"""What a browser is sent to, by what Jupyter servers have noted of themselves."""

import json

import pytest

from muster.cli.commands.inside.notebook_servers import WebPage, page_at

ADDRESS = "127.0.0.1:9999"


def note(**said: object) -> str:
    """The file of a server, as it writes it."""
    return json.dumps({"base_url": "/", "port": 8888, "secure": False, "token": "t0", **said}, indent=2)


@pytest.mark.parametrize(
    ("notes", "url"),
    [
        ("", "http://127.0.0.1:9999/"),
        (note(), "http://127.0.0.1:9999/?token=t0"),
        (note(token=""), "http://127.0.0.1:9999/"),
        (note(base_url="/user/anna/"), "http://127.0.0.1:9999/user/anna/?token=t0"),
        (note(secure=True), "https://127.0.0.1:9999/?token=t0"),
        (note(port=7777, token="t1") + note(), "http://127.0.0.1:9999/?token=t0"),
        (note(port=7777), "http://127.0.0.1:9999/"),
        ("[]\n7" + note(), "http://127.0.0.1:9999/?token=t0"),
        (note()[:-9], "http://127.0.0.1:9999/"),
        (note() + note()[:-9], "http://127.0.0.1:9999/?token=t0"),
    ],
)
def test_the_server_at_the_forwarded_port_is_opened_with_its_token(notes: str, url: str) -> None:
    assert page_at(notes, 8888).url(ADDRESS) == url


def test_of_servers_at_one_port_the_newest_counts_which_comes_first() -> None:
    assert page_at(note(token="newest") + note(token="killed"), 8888) == WebPage(path="/?token=newest")
