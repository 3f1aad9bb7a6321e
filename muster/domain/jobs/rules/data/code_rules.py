"""What is wrong with the code of a role."""

import posixpath
import re
from collections.abc import Iterator

from muster.domain.data.code import CODE_DIRECTORY, GIT_COMMIT, GIT_URL, LONGEST_GIT_URL, GitCode, JobCode, read_git_url
from muster.domain.data.tree import LARGEST_TREE_FORM, MalformedTreeError, refuse_bad_content_path
from muster.domain.fault import Fault
from muster.domain.jobs.job import Role
from muster.domain.jobs.rules import job_values as values
from muster.domain.jobs.rules.job_values import Wrong
from muster.domain.jobs.rules.telling import told
from muster.domain.quoting import quote

GIT_ADDRESS = GIT_URL
"""The pattern of the address of a repository, as far as a pattern can tell."""
GIT_REF = r"(?![-/.])(?!.*(\.\.|//|@\{|/\.|\.lock(/|$)))[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])"
"""The pattern of a branch, a tag or a commit, as git takes them."""
GIT_REF_SCHEMA = r"^[^\x00-\x20\x7f~^:?*\[\\\-/.][^\x00-\x20\x7f~^:?*\[\\]*$"
"""The same as far as a JSON Schema can tell."""
LONGEST_GIT_REF = 255
"""Characters of a branch, a tag or a commit."""
_SHORT_FORM = re.compile(r"(?P<user>[A-Za-z0-9_.-]+)@(?P<host>[A-Za-z0-9_.-]+):(?P<path>[^/].*)")


def git_url(url: str) -> Wrong | None:
    """The address of a repository."""
    if len(url) > LONGEST_GIT_URL:
        return Wrong(f"has {len(url)} characters; {LONGEST_GIT_URL} are the most")
    if read_git_url(url) is not None:
        return None
    authority = url.partition("://")[2].partition("/")[0]
    if url.startswith("https://") and "@" in authority:
        return Wrong(
            "must not have a user or password in it: everybody who sees the job would see them; a secret of kind git "
            "has them"
        )
    if url.startswith("ssh://") and ":" in authority.rpartition("@")[0]:
        return Wrong("must not have a password in it: everybody who sees the job would see it")
    short = _SHORT_FORM.fullmatch(url)
    if short is not None:
        meant = f"ssh://{short['user']}@{short['host']}/{short['path']}"
        return Wrong(f"must be a URL, which for {quote(url)} is {meant}", suggestion=meant)
    return Wrong(
        f"must be an address like https://git.example.org/team/train.git or ssh://git@git.example.org/team/train.git, "
        f"not {quote(url)}"
    )


def git_ref(text: str) -> Wrong | None:
    """A branch, a tag or a commit."""
    if len(text) > LONGEST_GIT_REF:
        return Wrong(f"has {len(text)} characters; {LONGEST_GIT_REF} are the most")
    if re.fullmatch(GIT_REF, text) and text.isprintable():
        return None
    return Wrong(f"must be a branch, a tag or the 40 digits of a commit, not {quote(text)}")


def git_commit(text: str) -> Wrong | None:
    """The name of a commit."""
    return None if re.fullmatch(GIT_COMMIT, text) else Wrong("must be the 40 digits of a commit, in lower case")


def git_path(text: str) -> Wrong | None:
    """A directory of a repository."""
    try:
        refuse_bad_content_path(text)
    except MalformedTreeError:
        return Wrong(f"must be a directory of the repository like trainer or src/trainer, not {quote(text)}")
    return None


def code_faults(role: Role) -> Iterator[Fault]:
    """Everything that is wrong with the code of a role, by paths below the role."""
    code = role.code
    if code is None:
        return
    if code.git is None:
        yield from told(("code", "tree"), values.code_tree(code))
    else:
        yield from _git_faults(code, code.git)
    if code.tree:
        yield from told(("code", "size"), values.number(code.size, 0, LARGEST_TREE_FORM))
    if not code.writable:
        yield from _files_in_code(role)


def _files_in_code(role: Role) -> Iterator[Fault]:
    """Files of the job that would be written into code that nobody may write to."""
    if role.image is None and role.workdir is not None:
        return  # a process has its files there
    code = CODE_DIRECTORY if role.image else "code"
    for number, file in enumerate(role.files):
        lies = posixpath.normpath(posixpath.join(role.workdir or code, file.path))
        if not file.path.startswith("/") and lies.startswith(f"{code}/"):
            message = f"{quote(file.path)} would lie in the code, which nobody may write to (code.writable: false)"
            yield Fault(path=("files", number, "path"), message=message)


def _git_faults(code: JobCode, git: GitCode) -> Iterator[Fault]:
    if code.folder:
        yield Fault(path=("code", "git"), message="stands beside folder; code comes from one of them")
    yield from told(("code", "git"), git_url(git.url))
    if git.ref:
        yield from told(("code", "ref"), git_ref(git.ref))
    if git.commit:
        yield from told(("code", "commit"), git_commit(git.commit))
    if git.path:
        yield from told(("code", "path"), git_path(git.path))
    if git.lfs and (found := read_git_url(git.url)) is not None and found.is_ssh:
        yield Fault(path=("code", "lfs"), message="is only for https://: large files are not fetched over ssh://")
    if git.secret:
        yield from told(("code", "secret"), values.label(git.secret))
    elif (found := read_git_url(git.url)) is not None and found.is_ssh:
        yield Fault(path=("code", "secret"), message="is missing: ssh:// needs a secret of kind git with an ssh-key")
    if code.tree:
        yield from told(("code", "tree"), values.code_tree(code))
