"""How git is started: the words, the settings and the variables, none of which come from this machine or its users."""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from muster.domain.data.code import GitCode, GitUrl
from muster.transfer.git.access import OpenKeys

LARGEST_PACK = 1024 * 1024 * 1024
"""Bytes of one file that git may write: of all that it fetches of a commit."""
GIT_MEMORY = 4 * 1024 * 1024 * 1024
"""Bytes that one program of git may map: a pack that unfolds into more ends it, not the node."""
ORPHAN_TIME = 5
"""Seconds beyond its time after which a git ends by itself, whose agent was killed."""
WANTED_REF = "refs/muster/wanted"
"""What git calls the commit that it has fetched."""

_KILOBYTE, _BLOCK = 1024, 512
_LIMITED = (
    'ulimit -c 0 && ulimit -f "$1" && ulimit -v "$2" && seconds=$3 && shift 3 && exec timeout -s KILL "$seconds" "$@"'
)
_CREDENTIAL_HELPER = (
    '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" "$MUSTER_GIT_USERNAME" "$MUSTER_GIT_TOKEN"; }; f'
)
"""A credential helper that answers from two variables of git itself, which no argument and no file has."""
_KEPT_VARIABLES = {"PATH": "PATH", "SSL_CERT_FILE": "GIT_SSL_CAINFO", "SSL_CERT_DIR": "GIT_SSL_CAPATH"}
"""The variables of this program that git gets, and what they are called there."""
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.bigFileThreshold": "16m",
    "core.packedGitLimit": "256m",
    "core.askPass": "",
    "credential.helper": "",  # forgets those that were named before
    "fetch.unpackLimit": "1",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.followRedirects": "false",
    "http.proxy": "",
    "http.lowSpeedLimit": "1",
    "pack.threads": "2",
    "protocol.version": "2",
    "submodule.recurse": "false",
    "transfer.bundleURI": "false",
}


def init_words(repository: Path) -> Sequence[str]:
    """Make an empty repository, with nothing in it that might be run."""
    return ("init", "--quiet", "--bare", "--template=", "--", str(repository))


def fetch_words(code: GitCode) -> Sequence[str]:
    """Fetch one commit, without what was before it."""
    return (
        "fetch",
        "--quiet",
        "--depth=1",
        "--no-tags",
        "--no-recurse-submodules",
        "--no-write-fetch-head",
        "--",
        code.url,
        f"+{code.wanted}:{WANTED_REF}",
    )


def commit_words() -> Sequence[str]:
    """Say which commit was fetched."""
    return ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{WANTED_REF}^{{commit}}")


def submodule_words(commit: str) -> Sequence[str]:
    """Say what a commit has in its `.gitmodules`."""
    return ("config", "--null", "--no-includes", f"--blob={commit}:.gitmodules", "--list")


def list_words(commit: str, path: str) -> Sequence[str]:
    """List the files below a directory of a commit; the digits in front keep a path from being an option."""
    return ("ls-tree", "-r", "-z", "-l", "--full-tree", f"{commit}:{path}")


def read_words() -> Sequence[str]:
    """Read the objects that standard input names, as they are: no filter and no attribute counts."""
    return ("cat-file", "--batch", "--buffer")


def git_command(repository: Path, words: Sequence[str], settings: Mapping[str, str], seconds: float) -> Sequence[str]:
    """The whole command, within its bounds of memory, of the size of files, and of time if nobody else ends it."""
    said = (word for name, value in {**_SETTINGS, **settings}.items() for word in ("-c", f"{name}={value}"))
    bounds = (str(LARGEST_PACK // _BLOCK), str(GIT_MEMORY // _KILOBYTE), str(int(seconds) + ORPHAN_TIME))
    return ("/bin/sh", "-c", _LIMITED, "sh", *bounds, "git", f"--git-dir={repository}", *said, *words)


def network_settings(url: GitUrl, address: str, keys: OpenKeys, stall: float) -> Mapping[str, str]:
    """What git is told of the server: the address that was looked at is the one that it goes to."""
    host = f"[{address}]" if ":" in address else address
    return {
        "http.lowSpeedTime": str(max(1, int(stall))),
        **({} if ":" in url.host else {"http.curloptResolve": f"{url.host}:{url.port}:{host}"}),
        **({"credential.helper": _CREDENTIAL_HELPER} if keys.token else {}),
    }


def git_environment(home: Path, url: GitUrl, address: str, keys: OpenKeys, stall: float) -> Mapping[str, str]:
    """All variables that git has: nothing of the user who runs it, and only what this server needs."""
    kept = {theirs: os.environ[ours] for ours, theirs in _KEPT_VARIABLES.items() if ours in os.environ}
    environment = {
        **kept,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": url.scheme,
    }
    if keys.token:
        environment |= {"MUSTER_GIT_USERNAME": keys.username, "MUSTER_GIT_TOKEN": keys.token}
    if url.is_ssh:
        environment |= {"GIT_SSH_COMMAND": _ssh_command(url, address, keys, stall), "GIT_SSH_VARIANT": "ssh"}
    return environment


def _ssh_command(url: GitUrl, address: str, keys: OpenKeys, stall: float) -> str:
    """SSH with the secret's key and known hosts, and nothing of the user who runs it."""
    alive = 15
    options = {
        "BatchMode": "yes",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "PreferredAuthentications": "publickey",
        "StrictHostKeyChecking": "yes",
        "UpdateHostKeys": "no",
        "UserKnownHostsFile": keys.hosts_file,
        "GlobalKnownHostsFile": "/dev/null",
        "HostName": address,
        "HostKeyAlias": url.host if url.port == 22 else f"[{url.host}]:{url.port}",  # noqa: PLR2004 - as in known_hosts
        "ForwardAgent": "no",
        "ClearAllForwardings": "yes",
        "PermitLocalCommand": "no",
        "ControlMaster": "no",
        "ControlPath": "none",
        "ProxyCommand": "none",
        "ConnectTimeout": str(alive),
        "ServerAliveInterval": str(alive),
        "ServerAliveCountMax": str(max(1, int(stall) // alive)),
    }
    said = (word for name, value in options.items() for word in ("-o", f"{name}={value}"))
    return shlex.join(("ssh", "-F", "/dev/null", "-i", keys.key_file, *said))
