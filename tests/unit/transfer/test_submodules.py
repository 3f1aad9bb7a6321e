"""Where submodules are, by what a commit says of them; no git runs here."""

import pytest

from muster.domain.data.code import read_git_url
from muster.transfer.git.access import GitKeys, keys_shown_to
from muster.transfer.git.faults import GitRefusedError
from muster.transfer.git.submodules import Submodule, SubmoduleLink, read_gitmodules, shown_address, submodules_of

PARENT = "https://git.example.org/team/train.git"
COMMIT = "ab" * 20


def found(url: str, parent: str = PARENT) -> str:
    (one,) = submodules_of(parent, [SubmoduleLink(path="lib", commit=COMMIT)], {"lib": {"path": "lib", "url": url}})
    return one.url


def test_keys_belong_to_the_path_of_a_submodule_whatever_its_name_is() -> None:
    told = b"submodule.a.b/c.path\nlib/\0submodule.a.b/c.url\n../b.git\0core.bare\ntrue\0submodule.x.url\nu\0"
    assert read_gitmodules(told) == {"lib": {"path": "lib/", "url": "../b.git"}}
    links = [SubmoduleLink(path="lib", commit=COMMIT)]
    assert list(submodules_of(PARENT, links, read_gitmodules(told))) == [
        Submodule(path="lib", url="https://git.example.org/team/b.git", commit=COMMIT)
    ]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("../lib.git", "https://git.example.org/team/lib.git"),
        ("../../other/lib.git", "https://git.example.org/other/lib.git"),
        ("./lib.git", "https://git.example.org/team/train.git/lib.git"),
        ("https://git.example.com:8443/lib", "https://git.example.com:8443/lib"),
        ("ssh://git@git.example.com/lib.git", "ssh://git@git.example.com/lib.git"),
        ("git@git.example.com:team/lib.git", "ssh://git@git.example.com/team/lib.git"),
    ],
)
def test_relative_and_short_urls_are_read_as_git_reads_them(said: str, meant: str) -> None:
    assert found(said) == meant


def test_what_is_relative_to_ssh_is_reached_over_ssh() -> None:
    assert (
        found("../lib.git", "ssh://git@git.example.org:2222/a/train.git") == "ssh://git@git.example.org:2222/a/lib.git"
    )


@pytest.mark.parametrize(
    "said",
    [
        "file:///srv/lib.git",
        "/srv/lib.git",
        "ext::sh -c id",
        "http://git.example.org/lib.git",
        "git://git.example.org/lib.git",
        "../../../../etc/lib.git",
        "../..",
        "-u/lib.git",
        "../lib.git;id",
        "git@-oProxyCommand=id:lib.git",
        "lib.git",
    ],
)
def test_other_places_are_refused_with_the_path_of_the_submodule(said: str) -> None:
    with pytest.raises(GitRefusedError, match="the submodule 'lib' is at"):
        found(said)


def test_a_password_in_the_url_of_a_submodule_is_not_shown() -> None:
    with pytest.raises(GitRefusedError) as refused:
        found("https://robot:t0k3n@git.example.org/lib.git?key=s3cret")
    assert "'https://git.example.org/lib.git'" in str(refused.value)
    assert "t0k3n" not in str(refused.value)
    assert "s3cret" not in str(refused.value)
    assert shown_address("https://a@b@git.example.org/\x1b[1m") == "https://git.example.org/ [1m"


def test_a_submodule_without_a_url_is_refused_and_one_that_is_not_to_be_updated_left_out() -> None:
    links = [SubmoduleLink(path="lib", commit=COMMIT)]
    with pytest.raises(GitRefusedError, match=r"'lib' has no url in \.gitmodules"):
        list(submodules_of(PARENT, links, {}))
    assert not list(submodules_of(PARENT, links, {"lib": {"path": "lib", "update": "none"}}))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://git.example.org/team/lib.git", True),
        ("https://git.example.org/other/lib.git", False),
        ("https://git.example.com/team/lib.git", False),
        ("https://git.example.org:8443/team/lib.git", False),
    ],
)
def test_a_submodule_elsewhere_is_not_shown_the_token(url: str, shown: bool) -> None:
    values = {"server": b"git.example.org/team", "username": b"robot", "token": b"t0k3n"}
    address = read_git_url(url)
    assert address is not None
    assert keys_shown_to(address, values) == (GitKeys(username="robot", token="t0k3n") if shown else GitKeys())
