"""How git is started, what it is told and what its words mean; no git runs here."""

import errno
import shlex
from pathlib import Path

import pytest

from muster.domain.data.code import GitCode, GitUrl, is_server_of, read_git_url
from muster.transfer.git import commands
from muster.transfer.git.access import GitKeys, OpenKeys, keys_of
from muster.transfer.git.faults import GitAwayError, GitRefusedError, git_fault

TOKEN = OpenKeys(username="robot", token="t0k3n")
KEY = OpenKeys(key_file="/proc/1/fd/7", hosts_file="/proc/1/fd/8")


def address(url: str) -> GitUrl:
    found = read_git_url(url)
    assert found is not None
    return found


WEB = address("https://git.example.org/team/train.git")
SSH = address("ssh://git@git.example.org:2222/team/train.git")


def whole(url: GitUrl, keys: OpenKeys, *words: str) -> list[str]:
    settings = commands.network_settings(url, "192.0.2.7", keys, 60)
    return list(commands.git_command(Path("/r"), words, settings, 60))


def test_no_argument_has_a_token_and_no_ref_can_be_an_option() -> None:
    code = GitCode(url="https://git.example.org/team/train.git", ref="main")
    said = whole(WEB, TOKEN, *commands.fetch_words(code))
    assert not [word for word in said if "t0k3n" in word or "robot" in word]
    assert said[-3:] == ["--", code.url, "+main:refs/muster/wanted"]


def test_git_ends_by_itself_soon_after_its_time() -> None:
    said = whole(WEB, TOKEN, "fetch")
    assert said[2].endswith('exec timeout -s KILL "$seconds" "$@"')
    assert said[6] == "65"


def test_the_commit_goes_before_the_branch_and_without_both_the_head_is_taken() -> None:
    assert (
        commands.fetch_words(GitCode(url="u", ref="main", commit="ab" * 20))[-1] == f"+{'ab' * 20}:refs/muster/wanted"
    )
    assert commands.fetch_words(GitCode(url="u"))[-1] == "+HEAD:refs/muster/wanted"


def test_git_has_the_settings_and_variables_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "GIT_TRACE", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "of somebody")
    environment = commands.git_environment(Path("/home"), WEB, "192.0.2.7", TOKEN, 60)
    assert "of somebody" not in environment.values()
    assert environment["GIT_TERMINAL_PROMPT"] == "0"
    assert environment["GIT_ALLOW_PROTOCOL"] == "https"
    assert environment["GIT_CONFIG_GLOBAL"] == "/dev/null"
    assert environment["HOME"] == "/home"
    assert "GIT_SSH_COMMAND" not in environment
    said = whole(WEB, TOKEN)
    for setting in (
        "core.hooksPath=/dev/null",
        "http.followRedirects=false",
        "http.proxy=",
        "transfer.bundleURI=false",
    ):
        assert setting in said


def test_git_goes_to_the_address_that_was_looked_at() -> None:
    assert "http.curloptResolve=git.example.org:443:192.0.2.7" in whole(WEB, TOKEN)


def test_ssh_believes_the_known_hosts_of_the_secret_alone_and_shows_its_key_alone() -> None:
    environment = commands.git_environment(Path("/home"), SSH, "192.0.2.7", KEY, 60)
    words = shlex.split(environment["GIT_SSH_COMMAND"])
    assert environment["GIT_ALLOW_PROTOCOL"] == "ssh"
    assert words[:5] == ["ssh", "-F", "/dev/null", "-i", "/proc/1/fd/7"]
    for option in (
        "StrictHostKeyChecking=yes",
        "UserKnownHostsFile=/proc/1/fd/8",
        "GlobalKnownHostsFile=/dev/null",
        "IdentityAgent=none",
        "HostName=192.0.2.7",
        "HostKeyAlias=[git.example.org]:2222",
        "BatchMode=yes",
    ):
        assert option in words


def test_of_a_secret_only_what_the_address_needs_is_used() -> None:
    values = {"username": b"robot", "token": b"t0k3n", "ssh-key": b"key", "known-hosts": b"hosts"}
    assert keys_of(address("https://git.example.org/a.git"), values) == GitKeys(username="robot", token="t0k3n")
    assert keys_of(address("ssh://git@git.example.org/a.git"), values) == GitKeys(ssh_key=b"key", known_hosts=b"hosts")


@pytest.mark.parametrize(
    ("server", "belongs"),
    [
        ("git.example.org", True),
        ("https://git.example.org", True),
        ("GIT.example.org:443/", True),
        ("git.example.org/team", True),
        ("git.example.org/other", False),
        ("git.example.org/te", False),
        ("git.example.org:8443", False),
        ("example.org", False),
        ("http://git.example.org", False),
        ("", False),
    ],
)
def test_a_token_is_shown_to_its_own_server_alone(server: str, belongs: bool) -> None:
    assert is_server_of(server, WEB) is belongs


def test_the_words_of_git_name_what_is_wrong_without_what_the_server_says() -> None:
    said = "remote: you said t0k3n\nfatal: Authentication failed for 'https://git.example.org/'\n"
    fault = git_fault(said, ["t0k3n"], 128)
    assert isinstance(fault, GitRefusedError)
    assert str(fault) == "it refuses what it was shown (Authentication failed for 'https://git.example.org/')"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("fatal: couldn't find remote ref x", GitRefusedError),
        ("fatal: repository 'https://x/' not found", GitRefusedError),
        ("Host key verification failed.\nfatal: Could not read from remote repository.", GitRefusedError),
        ("error: file write error: File too large", GitRefusedError),
        ("fatal: unable to access 'https://x/': Could not resolve host: x", GitAwayError),
        ("fatal: unable to access 'https://x/': The requested URL returned error: 503", GitAwayError),
        ("fatal: early EOF", GitAwayError),
        ("", GitAwayError),
    ],
)
def test_what_cannot_get_better_is_told_from_what_can(said: str, kind: type[Exception]) -> None:
    assert type(git_fault(said, (), 128)) is kind


def test_a_full_disk_is_a_full_disk() -> None:
    fault = git_fault("fatal: write error: No space left on device", (), 128)
    assert isinstance(fault, OSError)
    assert fault.errno == errno.ENOSPC


def test_words_that_hold_a_secret_or_control_characters_are_cleaned() -> None:
    fault = git_fault("fatal: odd \x1b[31m t0k3n", ["t0k3n"], 1)
    assert str(fault) == "odd  [31m ***"
