"""How an identity provider is named on the command line and in the file of options."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.logins.settings import GroupGrant, LoginSettings, permitted_url
from coordinator.settings import parse
from muster.domain.fleet.access import EVERYWHERE, Access

NEEDED = ("--oidc-issuer", "https://login.example.org/realms/main", "--oidc-client-id", "muster")


def settings(*arguments: str) -> LoginSettings | None:
    return parse(["--state", "/nowhere", *arguments], {}).login


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit):
        settings(*arguments)
    return capsys.readouterr().err.strip().rpartition("muster-coordinator: error: ")[2]


def test_without_a_provider_there_is_none() -> None:
    assert settings() is None


def test_everything_that_can_be_chosen() -> None:
    assert settings(*NEEDED, "--oidc-grant", "ml=vision:member") == LoginSettings(
        issuer="https://login.example.org/realms/main",
        client_id="muster",
        grants=(GroupGrant(group="ml", project="vision", access=Access.MEMBER),),
    )
    more = ("--oidc-client-secret-file", "/s", "--oidc-ca-file", "/c", "--oidc-name-claim", "upn", "--oidc-ttl", "45m")
    last = ("--oidc-groups-claim", "roles", "--oidc-grant", "a=*:viewer", "--oidc-grant", "cn=b,ou=x:y=vision:admin")
    assert settings(*NEEDED, *more, *last) == LoginSettings(
        issuer="https://login.example.org/realms/main",
        client_id="muster",
        client_secret_file=Path("/s"),
        ca_file=Path("/c"),
        name_claims=("upn",),
        groups_claim="roles",
        grants=(
            GroupGrant(group="a", project=EVERYWHERE, access=Access.VIEWER),
            GroupGrant(group="cn=b,ou=x:y", project="vision", access=Access.ADMIN),
        ),
        ttl=timedelta(minutes=45),
    )


def test_the_file_of_options_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "coordinator.toml"
    file.write_text(
        'oidc-issuer = "https://login.example.org/realms/main"\noidc-client-id = "muster"\n'
        'oidc-grant = ["ml=vision:member"]\noidc-ttl = "45m"\n'
    )
    assert settings("--config", str(file)) == settings(*NEEDED, "--oidc-grant", "ml=vision:member", "--oidc-ttl", "45m")


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = "login through an identity provider needs {}, too; docs/login.md tells how"
    assert refusal(capsys, *NEEDED[:2]) == said.format("--oidc-client-id")
    assert refusal(capsys, *NEEDED) == said.format("--oidc-grant")
    assert refusal(capsys, "--oidc-ttl", "1h") == said.format("--oidc-issuer")
    both = refusal(capsys, *NEEDED, "--oidc-grant", "a=b:viewer", "--local")
    assert both == "--local serves this machine only, whose user is known already; leave the --oidc options out"


@pytest.mark.parametrize("grant", ["", "a", "a=b", "a=b:c", "=b:viewer", "a=B:viewer", "a=:viewer", "a=b:viewer:x"])
def test_a_grant_that_is_none_is_refused(grant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not GROUP=PROJECT:ACCESS, where access is one of viewer, member, operator, admin" in refusal(
        capsys, *NEEDED, f"--oidc-grant={grant}"
    )


@pytest.mark.parametrize("ttl", ["0", "31d", "soon", "-1h"])
def test_a_login_counts_for_a_time_and_not_for_ever(ttl: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "argument --oidc-ttl: a " in refusal(capsys, *NEEDED, "--oidc-grant", "a=b:viewer", f"--oidc-ttl={ttl}")


@pytest.mark.parametrize(
    "url",
    ["https://a", "https://a.example:8443/x?y=z", "http://127.0.0.1:8080", "http://[::1]:1/", "http://localhost/"],
)
def test_what_nobody_else_hears_is_permitted(url: str) -> None:
    assert permitted_url(url)


@pytest.mark.parametrize(
    "url",
    [
        *("http://a.example", "http://127.0.0.1.example", "http://127.0.0.1@evil.example/", "ftp://a", "//a", "a", ""),
        *("https://", "https://u:p@a", "https://a b", "https://a\n", "https://a:port", "https://[::1", "file:///x"),
    ],
)
def test_other_urls_are_not_permitted(url: str) -> None:
    assert not permitted_url(url)


@given(st.text())
def test_nonsense_is_no_reason_to_fail(text: str) -> None:
    assert permitted_url(f"http://{text}.example/{text}") in {True, False}


@pytest.mark.parametrize(
    ("said", "url"),
    [
        ("https://muster.example.org:7464/", "https://muster.example.org:7464"),
        ("http://127.0.0.1:7464", "http://127.0.0.1:7464"),
    ],
)
def test_the_console_has_a_url_that_nobody_can_listen_to(said: str, url: str) -> None:
    assert parse(["--state", "/nowhere", "--console-url", said], {}).console_url == url


@pytest.mark.parametrize(
    "said", ["http://muster.example.org", "https://muster.example.org/there", "muster.example.org"]
)
def test_another_url_of_the_console_is_refused(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"'{said}' is no URL like https://muster.example.org" in refusal(capsys, "--console-url", said)
