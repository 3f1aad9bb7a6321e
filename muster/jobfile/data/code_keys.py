"""The map that says where the code of a job comes from."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, model_validator

from muster.domain.data.code import GitCode, JobCode
from muster.domain.data.tree import LARGEST_TREE_FORM
from muster.domain.jobs.rules import job_values
from muster.domain.jobs.rules.data import code_rules
from muster.domain.jobs.rules.job_values import Wrong
from muster.jobfile import fields
from muster.jobfile.document import Scalar
from muster.jobfile.errors import FieldError
from muster.jobfile.section import Also, OrShort, Section, key


def _git(rule: Callable[[str], Wrong | None], pattern: str) -> tuple[BeforeValidator, Also]:
    return BeforeValidator(partial(fields.text_by, rule)), Also({"pattern": pattern})


GitAddress = Annotated[str, *_git(code_rules.git_url, f"^{code_rules.GIT_ADDRESS}$")]
GitRef = Annotated[str, *_git(code_rules.git_ref, code_rules.GIT_REF_SCHEMA)]
GitCommit = Annotated[str, *_git(code_rules.git_commit, f"^{code_rules.GIT_COMMIT}$")]
GitPath = Annotated[str, *_git(code_rules.git_path, "^[^/]")]


class CodeKeys(Section):
    """A folder that is sent at the submit, a commit of a repository, or what the depot has; short: the folder."""

    folder: fields.Filled | None = key("path", "A folder where the job is submitted from, relative to the job file.")
    git: GitAddress | None = key(
        "URL", "A Git repository, with `https://` or `ssh://`, of which all executions get the same commit."
    )
    ref: GitRef | None = key(
        "text", "The branch, tag or whole commit (default: the HEAD of the repository). Needs `git`."
    )
    commit: GitCommit | None = key(
        "40 digits",
        "The commit that counts, whatever `ref` says; `muster show -o yaml` prints the one that was found. Needs "
        "`git`.",
    )
    path: GitPath | None = key("path", "The directory of the repository that is wanted (default: all). Needs `git`.")
    secret: fields.Label | None = key(
        "word",
        "The secret of kind `git` that opens the repository (`muster secrets list`); `ssh://` needs one. Needs `git`.",
    )
    submodules: fields.Flag = key(
        "`true`, `false`",
        "Whether the repositories that it names as its submodules come along, at the commits that it names. Needs "
        "`git`.",
        default=False,
    )
    lfs: fields.Flag = key(
        "`true`, `false`",
        "Whether large files come along, for which small files of Git LFS stand in the repository; up to 256 MiB in "
        "all, over `https://`. Needs `git`.",
        default=False,
    )
    tree: Annotated[fields.Filled | None, Also({"pattern": f"^{job_values.CODE_TREE}$"})] = key(
        "SHA-256", "The tree of a folder that was sent, as `muster upload` prints it."
    )
    size: Annotated[int, *fields.within(0, LARGEST_TREE_FORM)] | None = key(
        "bytes", "The `size` that `muster upload -o json` prints. Needs `tree`."
    )

    writable: fields.Flag = key(
        "`true`, `false`",
        "Whether each execution has a copy to which it may write. `false`: all of a node share one directory, which "
        "they can only read.",
        default=True,
    )

    @model_validator(mode="after")
    def _one_place(self) -> "CodeKeys":
        if sum(each is not None for each in (self.folder, self.git, self.tree)) != 1:
            raise FieldError("needs exactly one of folder, git and tree")
        if (self.tree is None) != (self.size is None):
            raise FieldError("needs tree and size together, as `muster upload -o json` prints them")
        if self.git is None and {
            self.ref,
            self.commit,
            self.path,
            self.secret,
            self.submodules or self.lfs or None,
        } != {None}:
            raise FieldError("has ref, commit, path, secret, submodules or lfs, which are for git")
        return self

    @property
    def code(self) -> JobCode:
        """The value of the domain, for all but a folder."""
        if self.git is None:
            return JobCode(tree=self.tree or "", size=self.size or 0, writable=self.writable)
        more = {name: getattr(self, name) or "" for name in ("ref", "commit", "path", "secret")}
        return JobCode(
            git=GitCode(url=self.git, submodules=self.submodules, lfs=self.lfs, **more), writable=self.writable
        )


def _code_form(value: object) -> object:
    """The map for a bare folder."""
    return {"folder": value} if isinstance(value, Scalar) else value


CodeForm = Annotated[CodeKeys, BeforeValidator(_code_form), OrShort({"type": "string", "minLength": 1})]
