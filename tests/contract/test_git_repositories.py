"""Commits fetched by the real git from a real server, and what is refused of them."""

import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import pytest

from muster.domain.data.code import GitCode
from muster.domain.data.tree import ContentKind
from muster.transfer.git.access import GitKeys, keys_shown_to
from muster.transfer.git.faults import GitAwayError, GitRefusedError
from muster.transfer.git.repository import FetchedCommit, GitFetch, GitLimits, Opens
from tests.git_server import GitServer, git_server
from tests.integration.sshd import Sshd, sshd

NO_KEYS, SOON = GitKeys(), GitLimits(seconds=60)
TOKEN = "t0k3n-of-nobody"
Fetch: TypeAlias = Callable[..., FetchedCommit]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    with git_server(tmp_path / "server") as found:
        monkeypatch.setenv("SSL_CERT_FILE", str(found.authority))
        yield found


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    places = (tmp_path / f"fetch-{number}" for number in range(100))

    def fetched(
        url: str, ref: str = "", path: str = "", keys: GitKeys = NO_KEYS, limits: GitLimits = SOON
    ) -> FetchedCommit:
        return fetch_code(GitCode(url=url, ref=ref, path=path), lambda _: keys, limits)

    def fetch_code(code: GitCode, opens: Opens, limits: GitLimits) -> FetchedCommit:
        place = next(places)
        place.mkdir()
        return GitFetch(code, opens, place, limits).run()

    return fetched


def kinds(found: FetchedCommit) -> dict[str, str]:
    return {each.path: each.kind.value for each in found.tree.entries}


def test_branches_tags_commits_and_the_head_are_found(server: GitServer, fetch: Fetch) -> None:
    first = server.git("rev-parse", "HEAD")
    server.git("tag", "--annotate", "--message", "a tag", "v1")
    server.git("push", "--quiet", str(server.bare), "v1")
    second = server.commit({"train.py": "print('two')\n"})
    other = server.commit({"train.py": "print('three')\n"}, branch="team/topic")
    assert fetch(server.url).commit == second
    assert fetch(server.url, ref="main").commit == second
    assert fetch(server.url, ref="refs/heads/team/topic").commit == other
    assert fetch(server.url, ref="v1").commit == first
    found = fetch(server.url, ref=first)
    assert found.commit == first
    assert kinds(found) == {"lib/words.txt": "-", "train.py": "-"}
    digest = sha256(b"print('one')\n").hexdigest()
    assert {each.path: each.content for each in found.tree.entries}["train.py"] == digest
    assert found.files[digest].read_bytes() == b"print('one')\n"


def test_programs_and_links_stay_what_they_are_and_other_repositories_are_left_out(
    server: GitServer, fetch: Fetch
) -> None:
    program = server.work / "lib" / "run"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (server.work / "lib" / "same").symlink_to("words.txt")
    (server.work / ".gitattributes").write_text("*.txt text eol=crlf\n*.dat filter=evil\n")
    server.git("update-index", "--add", "--cacheinfo", f"160000,{server.git('rev-parse', 'HEAD')},vendored")
    server.commit({"lib/raw.dat": "as it is\n"})
    found = fetch(server.url, path="lib")
    assert kinds(found) == {"raw.dat": "-", "run": "x", "same": "l", "words.txt": "-"}
    assert [each.content for each in found.tree.entries if each.kind is ContentKind.LINK] == ["words.txt"]
    assert found.files[sha256(b"one\n").hexdigest()].read_bytes() == b"one\n"  # no filter has changed the ends of lines
    assert "vendored" not in kinds(fetch(server.url))


@pytest.fixture
def other(server: GitServer, tmp_path: Path) -> Iterator[GitServer]:
    """Another server, with an authority of its own."""
    with git_server(tmp_path / "other") as found:
        with server.authority.open("ab") as both:
            both.write(found.authority.read_bytes())
        yield found


def with_submodules(server: GitServer, place: Path, limits: GitLimits = SOON, path: str = "") -> FetchedCommit:
    """Fetch with a secret that is for this server."""
    values = {"server": f"127.0.0.1:{server.port}".encode(), "username": b"robot", "token": TOKEN.encode()}
    code = GitCode(url=server.url, path=path, submodules=True)
    place.mkdir()
    return GitFetch(code, lambda url: keys_shown_to(url, values), place, limits).run()


def test_submodules_come_along_at_their_commits_and_only_the_own_server_is_shown_the_token(
    server: GitServer, other: GitServer, tmp_path: Path
) -> None:
    server.user, server.token = "robot", TOKEN
    inner = server.git("rev-parse", "HEAD")
    other.link("deep/est", server.url, inner)
    middle = other.commit({"middle.txt": "middle\n"})
    other.commit({"middle.txt": "later\n"})
    server.link("lib/middle", other.url, middle)
    server.link("again", "../train.git", inner)
    server.link("lib/never", "ext::sh -c id", inner)
    server.git("config", "--file", ".gitmodules", "submodule.lib/never.update", "none")
    server.commit({"two.txt": "two\n"})

    found = with_submodules(server, tmp_path / "whole")

    below_lib = [
        "middle/.gitmodules",
        "middle/deep/est/lib/words.txt",
        "middle/deep/est/train.py",
        "middle/lib/words.txt",
        "middle/middle.txt",
        "middle/train.py",
        "words.txt",
    ]
    again = ["again/lib/words.txt", "again/train.py"]
    assert sorted(kinds(found)) == [
        ".gitmodules",
        *again,
        *(f"lib/{each}" for each in below_lib),
        "train.py",
        "two.txt",
    ]
    assert found.files[sha256(b"middle\n").hexdigest()].read_bytes() == b"middle\n"
    assert sorted(kinds(with_submodules(server, tmp_path / "below", path="lib"))) == below_lib
    assert set(other.authorizations) == {""}


def test_a_submodule_that_cannot_be_fetched_is_named_with_its_url(
    server: GitServer, other: GitServer, tmp_path: Path
) -> None:
    server.link("lib/other", other.url, "1" * 40)
    server.commit({})
    with pytest.raises(GitRefusedError) as refused:
        with_submodules(server, tmp_path / "gone")
    assert str(refused.value).startswith(f"the submodule 'lib/other' at {other.url}: there is no such ref")
    server.git("update-index", "--cacheinfo", f"160000,{other.git('rev-parse', 'HEAD')},lib/other")
    server.commit({})
    with pytest.raises(GitRefusedError, match=r"'lib/other' at .* has 5 files; 4 are the most"):
        with_submodules(server, tmp_path / "many", GitLimits(files=4, seconds=60))
    other.status = 503
    with pytest.raises(GitAwayError, match=r"'lib/other' at .*503"):
        with_submodules(server, tmp_path / "away")


def test_large_files_come_in_place_of_those_that_stand_for_them_and_a_storage_elsewhere_sees_no_token(
    server: GitServer, other: GitServer, tmp_path: Path
) -> None:
    server.user, server.token = "robot", TOKEN
    server.storage = other
    server.commit({"lib/model.bin": server.pointer(b"large " * 1000), "same.bin": server.pointer(b"large " * 1000)})

    found = fetch_large(server, tmp_path / "elsewhere")

    digest = sha256(b"large " * 1000).hexdigest()
    assert [each.path for each in found.tree.entries if each.content == digest] == ["lib/model.bin", "same.bin"]
    assert found.files[digest].read_bytes() == b"large " * 1000
    assert [path for path in other.asked if path.startswith("/large/")] == [f"/large/{digest}"]
    assert set(other.authorizations) == {""}

    server.storage, server.large = None, other.large
    assert fetch_large(server, tmp_path / "here").tree == found.tree
    server.large = {digest: b"small"}
    with pytest.raises(GitAwayError, match="broke off"):
        fetch_large(server, tmp_path / "short")
    server.large = {digest: b"other " * 1000}
    with pytest.raises(GitRefusedError, match="does not hold what its SHA-256 says"):
        fetch_large(server, tmp_path / "wrong")
    server.large = {}
    with pytest.raises(GitRefusedError, match=f"does not give the large file {digest[:12]} .code 404"):
        fetch_large(server, tmp_path / "gone")
    server.commit({"lib/model.bin": server.pointer(b"x").replace("size 1", f"size {256 * 1024 * 1024 + 1}")})
    with pytest.raises(GitRefusedError, match=r"have 256.*are the most that is fetched"):
        fetch_large(server, tmp_path / "too-large", path="lib")


def fetch_large(server: GitServer, place: Path, path: str = "") -> FetchedCommit:
    values = {"server": f"127.0.0.1:{server.port}".encode(), "username": b"robot", "token": TOKEN.encode()}
    place.mkdir()
    code = GitCode(url=server.url, path=path, lfs=True)
    return GitFetch(code, lambda url: keys_shown_to(url, values), place, SOON).run()


@pytest.mark.parametrize(
    ("ref", "path", "sentence"),
    [
        ("no-such", "", "there is no such ref (couldn't find remote ref no-such)"),
        ("0" * 40, "", "there is no such ref"),
        ("main", "no-such", "has no directory 'no-such'"),
        ("main", "train.py", "has no directory 'train.py'"),
    ],
)
def test_what_is_not_there_is_named(server: GitServer, fetch: Fetch, ref: str, path: str, sentence: str) -> None:
    with pytest.raises(GitRefusedError) as refused:
        fetch(server.url, ref=ref, path=path)
    assert sentence in str(refused.value)


def test_a_repository_that_is_not_there_is_refused(server: GitServer, fetch: Fetch) -> None:
    with pytest.raises(GitRefusedError, match="there is no such repository"):
        fetch(server.url.replace("train", "other"))


def test_a_token_opens_a_repository_and_is_nowhere_else(server: GitServer, fetch: Fetch, tmp_path: Path) -> None:
    server.user, server.token = "robot", TOKEN
    with pytest.raises(GitRefusedError, match="without credentials"):
        fetch(server.url)
    with pytest.raises(GitRefusedError, match="it refuses what it was shown") as refused:
        fetch(server.url, keys=GitKeys(username="robot", token="wr0ng-token"))
    assert "wr0ng-token" not in str(refused.value)
    assert fetch(server.url, keys=GitKeys(username="robot", token=TOKEN)).tree.entries
    left = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_relative_to(tmp_path / "server")]
    assert left
    assert not [path for path in left if TOKEN.encode() in path.read_bytes()]
    assert TOKEN not in repr(GitKeys(username="robot", token=TOKEN))


def test_words_of_a_server_that_repeat_a_token_are_not_shown(server: GitServer, fetch: Fetch) -> None:
    server.status, server.said = 404, f"you have shown {TOKEN}"
    with pytest.raises(GitRefusedError) as refused:
        fetch(server.url, keys=GitKeys(username="robot", token=TOKEN))
    assert TOKEN not in str(refused.value)


def test_a_token_follows_no_redirection(server: GitServer, fetch: Fetch) -> None:
    server.status = 301
    with pytest.raises(GitRefusedError, match="leads on to another address"):
        fetch(server.url, keys=GitKeys(username="robot", token=TOKEN))


def test_a_server_that_is_away_may_be_asked_again(server: GitServer, fetch: Fetch) -> None:
    server.status = 503
    with pytest.raises(GitAwayError, match="503"):
        fetch(server.url)
    with pytest.raises(GitAwayError, match="Failed to connect"):
        fetch("https://127.0.0.1:1/team/train.git")
    with pytest.raises(GitAwayError, match="is not found"):
        fetch("https://nowhere.invalid/team/train.git")


def test_a_certificate_of_strangers_is_refused(
    server: GitServer, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(GitRefusedError, match="its certificate is not believed"):
        fetch(server.url)


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[fe80::1]"])
def test_addresses_of_the_link_are_not_asked(fetch: Fetch, host: str) -> None:
    with pytest.raises(GitRefusedError, match="an address of the link itself"):
        fetch(f"https://{host}/team/train.git")


def test_settings_and_hooks_of_this_machine_do_not_count(
    server: GitServer, fetch: Fetch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, ran = tmp_path / "home", tmp_path / "ran"
    hooks = home / "templates" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("reference-transaction", "post-checkout", "post-merge"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (hooks / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[init]\n  templateDir = {home / 'templates'}\n[core]\n  hooksPath = {hooks}\n"
        f'[url "https://127.0.0.1:1/"]\n  insteadOf = {server.url}\n[credential]\n  helper = "!touch {ran}"\n'
    )
    for name, value in {
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_ASKPASS": f"/usr/bin/touch {ran}",
        "GIT_TRACE": str(ran),
        "https_proxy": "http://127.0.0.1:1",
    }.items():
        monkeypatch.setenv(name, value)
    assert fetch(server.url).tree.entries
    assert not ran.exists()


@pytest.mark.parametrize(("target", "why"), [("/etc/passwd", "is not in the code"), ("../out", "is not in the code")])
def test_links_that_lead_out_are_refused(server: GitServer, fetch: Fetch, target: str, why: str) -> None:
    (server.work / "leads-out").symlink_to(target)
    server.commit({})
    with pytest.raises(GitRefusedError, match=why):
        fetch(server.url)


def test_paths_that_no_file_can_have_are_refused(server: GitServer, fetch: Fetch) -> None:
    server.commit({"a\nb.txt": "a line"})
    with pytest.raises(GitRefusedError, match="control characters"):
        fetch(server.url)


def test_more_than_is_taken_as_code_is_not_read(server: GitServer, fetch: Fetch) -> None:
    server.commit({"large.bin": "x" * 100_000})
    with pytest.raises(GitRefusedError, match="are the most that is taken as code"):
        fetch(server.url, limits=GitLimits(size=50_000, seconds=60))
    with pytest.raises(GitRefusedError, match="has 3 files; 2 are the most"):
        fetch(server.url, limits=GitLimits(files=2, seconds=60))


def test_a_fetch_that_takes_too_long_is_ended(server: GitServer, fetch: Fetch) -> None:
    with pytest.raises(GitAwayError, match="took too long"):
        fetch(server.url, limits=GitLimits(seconds=0))


def test_a_key_opens_a_repository_over_ssh_whose_host_is_known(
    server: GitServer, fetch: Fetch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/nonexistent")
    with sshd(tmp_path / "sshd") as host, sshd(tmp_path / "other") as other:
        user = os.environ.get("USER", "root")
        url = f"ssh://{user}@127.0.0.1:{host.port}{server.bare}"
        keys = GitKeys(ssh_key=host.key.read_bytes(), known_hosts=known(host))
        assert kinds(fetch(url, keys=keys)) == {"lib/words.txt": "-", "train.py": "-"}
        with pytest.raises(GitRefusedError, match="its host key is not in known-hosts"):
            fetch(url, keys=GitKeys(ssh_key=host.key.read_bytes(), known_hosts=known(other)))
        with pytest.raises(GitRefusedError, match="it refuses what it was shown"):
            fetch(url, keys=GitKeys(ssh_key=other.key.read_bytes(), known_hosts=known(host)))
        with pytest.raises(GitRefusedError, match="ssh-key and known-hosts"):
            fetch(url)
    secret = host.key.read_bytes().splitlines()[1]
    places = [path for path in tmp_path.glob("fetch-*/**/*") if path.is_file()]
    assert not [path for path in places if secret in path.read_bytes()]


def known(host: Sshd) -> bytes:
    return f"{host.host_key.name} {host.host_key.kind} {host.host_key.key}\n".encode()
