"""What git says when it fails, as a fault of the job or of the way to the server, in one sentence."""

import errno
import re
import signal
from collections.abc import Iterable

from muster.domain.errors import MusterError

SHOWN_OF_GIT = 300
"""Characters of what git says that people are shown."""

_REFUSED = (
    (r"couldn't find remote ref|not our ref|unadvertised object|Server does not allow request", "there is no such ref"),
    (r"could not read (Username|Password)|terminal prompts disabled", "it lets nobody in without credentials"),
    (r"Authentication failed|returned error: 40[13]|Permission denied|HTTP 40[13]", "it refuses what it was shown"),
    (r"Host key verification failed|host key is known", "its host key is not in known-hosts of the secret"),
    (
        r"Load key .*: |invalid format|error in libcrypto",
        "the ssh-key of the secret is no private key without a passphrase",
    ),
    (
        r"SSL certificate problem|certificate verif|CAfile|no alternative certificate|SSL: ",
        "its certificate is not believed",
    ),
    (r"returned error: 3\d\d|[Rr]edirect", "it leads on to another address; name that one"),
    (
        r"not found|does not appear to be a git repository|returned error: 404|returned error: 410",
        "there is no such repository",
    ),
    (r"not valid: is this a git repository|not a git repository", "what is there is no Git repository"),
    (r"mismatched (object format|algorithms)", "it names objects by SHA-256, which is not read so far"),
)
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_TOO_LARGE = re.compile(r"File too large|[Ff]ile size limit|exceeds maximum|signal 25")
_WROTE_TOO_MUCH = {-signal.SIGXFSZ, 128 + signal.SIGXFSZ}
"""How git, or the shell that has started it, ends that writes more than it may."""
_NOISE = re.compile(r"^(remote:|hint:|warning:|Please make sure|and the repository exists|\s*$)")


class GitRefusedError(MusterError):
    """A repository does not have what was asked for, or does not let anybody in: asking again does not help."""


class GitAwayError(MusterError):
    """A repository has no answer now."""


class GitMissingError(MusterError):
    """The machine has no git, or no ssh."""


def git_fault(said: str, secrets: Iterable[str], code: int) -> MusterError | OSError:
    """The fault that git's words mean; `said` is the end of what it has written, `code` how it ended."""
    if _FULL.search(said):
        return OSError(errno.ENOSPC, "No space left on device")
    shown = _last_words(said, secrets) or (f"git was ended by signal {-code}" if code < 0 else f"git ended with {code}")
    if _TOO_LARGE.search(said) or code in _WROTE_TOO_MUCH:
        return GitRefusedError("it is larger than what is fetched of a repository")
    for pattern, meaning in _REFUSED:
        if re.search(pattern, said):
            return GitRefusedError(f"{meaning} ({shown})")
    return GitAwayError(shown)


def _last_words(said: str, secrets: Iterable[str]) -> str:
    """The first line that says what was wrong; what the server itself says is left out, as it may repeat anything."""
    lines = [line for line in said.splitlines() if not _NOISE.match(line)]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "ssh:"))] or lines
    text = (telling[0] if telling else "").removeprefix("fatal: ").removeprefix("error: ")
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    printable = "".join(each if each.isprintable() else " " for each in text)
    return printable.strip()[:SHOWN_OF_GIT]
