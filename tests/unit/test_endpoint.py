"""Addresses of coordinators as people write them, and what is kept of logins."""

from pathlib import Path

import pytest

from muster.client.endpoint import (
    Login,
    coordinator_address,
    forget_login,
    home,
    keep_login,
    local_address,
    login_of,
    note_up,
    parse_address,
)
from muster.domain.errors import InvalidJobError, MusterError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost", "localhost:7460"),
        ("localhost:", "localhost:7460"),
        (" c1.example.org:7470 ", "c1.example.org:7470"),
        ("10.0.0.7:007460", "10.0.0.7:7460"),
        ("::1", "[::1]:7460"),
        ("[::1]", "[::1]:7460"),
        ("[fe80::1%eth0]:9", "[fe80::1%eth0]:9"),
        ("unix:/run/muster.sock", "unix:/run/muster.sock"),
    ],
)
def test_the_port_of_an_address_may_be_left_out(text: str, address: str) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo:bar", "the port in 'foo:bar' must be a number from 1 to 65535"),
        ("foo:0", "the port in 'foo:0' must be a number"),
        ("foo:65536", "the port in 'foo:65536' must be a number"),
        ("http://c1:7460", "without http:// or a path"),
        ("c1:7460/jobs", "without http:// or a path"),
        ("", "'' names no host; write HOST:PORT, like localhost:7460"),
        (":7460", "names no host"),
        ("a b", "names no host"),
        ("--help", "names no host"),
    ],
)
def test_what_is_no_address_is_refused_with_a_sentence(text: str, message: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        parse_address(text)

    assert message in str(refused.value)


def test_an_address_from_the_environment_or_an_option_is_completed(tmp_path: Path) -> None:
    environ = {"MUSTER_HOME": str(tmp_path), "MUSTER_COORDINATOR": "c1"}

    assert coordinator_address(environ) == "c1:7460"
    assert login_of(environ, "c2").address == "c2:7460"


def test_after_a_logout_the_authority_is_still_known_and_the_token_is_not(tmp_path: Path) -> None:
    environ = {"MUSTER_HOME": str(tmp_path)}
    keep_login(tmp_path, Login(address="c1:7460", authority="PEM", token="secret"))

    forget_login(tmp_path, "c1:7460")

    assert login_of(environ, "c1") == Login(address="c1:7460", authority="PEM")
    assert coordinator_address(environ) == "127.0.0.1:7460"
    assert "secret" not in "".join(each.read_text() for each in tmp_path.rglob("*") if each.is_file())


def test_what_muster_up_runs_is_known_as_such(tmp_path: Path) -> None:
    assert local_address({"MUSTER_HOME": str(tmp_path)}) is None

    note_up(tmp_path, Login(address="127.0.0.1:1234", token="t"))

    assert local_address({"MUSTER_HOME": str(tmp_path)}) == "127.0.0.1:1234"


def test_a_home_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(MusterError, match=r"cannot write to .*/file/home: Not a directory; set MUSTER_HOME to a dir"):
        keep_login(tmp_path / "file" / "home", Login(address="c1:7460"))


def test_a_user_without_a_home_is_told_to_name_one() -> None:
    with pytest.raises(MusterError, match="set MUSTER_HOME to a directory"):
        home({"MUSTER_HOME": "~nobody-of-that-name/x"})
