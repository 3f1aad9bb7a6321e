"""What job files say of code from repositories."""

from pathlib import Path

import pytest

from muster.domain.data.code import GitCode, JobCode
from muster.domain.jobs.job import JobSpec
from muster.jobfile import JobFileError, dump_job, load_job

HEAD = "name: a\ncommand: x\n"
URL = "https://git.example.org/team/train.git"


def loaded(text: str) -> JobSpec:
    return load_job(text, "job.yaml")


def test_a_repository_is_named_with_what_is_wanted_of_it() -> None:
    said = {"git": URL, "ref": "v1", "commit": "ab" * 20, "path": "lib", "secret": "gitlab"}
    text = f"{HEAD}code: {{{', '.join(f'{key}: {value}' for key, value in said.items())}}}\n"
    git = GitCode(url=URL, ref="v1", commit="ab" * 20, path="lib", secret="gitlab")
    assert loaded(text).roles[0].code == JobCode(git=git)
    assert dump_job(loaded(text))["code"] == said


def test_submodules_and_large_files_come_along_where_the_job_says_so() -> None:
    text = f"{HEAD}code: {{git: '{URL}', submodules: true, lfs: true}}\n"
    assert loaded(text).roles[0].code == JobCode(git=GitCode(url=URL, submodules=True, lfs=True))
    assert dump_job(loaded(text))["code"] == {"git": URL, "submodules": True, "lfs": True}


def test_code_that_executions_share_is_said_of_every_kind(tmp_path: Path) -> None:
    for said in ({"git": URL}, {"tree": "ab" * 32, "size": 61}, {"folder": str(tmp_path)}):
        keys = ", ".join(f"{key}: {value}" for key, value in said.items())
        spec = load_job(f"{HEAD}code: {{{keys}, writable: false}}\n", "job.yaml", base=tmp_path)
        assert spec.roles[0].code is not None
        assert not spec.roles[0].code.writable
        assert dump_job(spec)["code"] == {**said, "writable": False}


def test_what_was_fetched_is_written_as_its_commit_and_not_as_a_tree() -> None:
    spec = loaded(f"{HEAD}code: {{git: '{URL}'}}\n")
    assert dump_job(spec)["code"] == {"git": URL}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (f"{{git: '{URL}', folder: .}}", "code: needs exactly one of folder, git and tree"),
        ("{}", "code: needs exactly one of folder, git and tree"),
        ("{folder: ., ref: main}", "code: has ref, commit, path, secret, submodules or lfs, which are for git"),
        ("{folder: ., submodules: true}", "code: has ref, commit, path, secret, submodules or lfs, which are for git"),
        ("{folder: ., lfs: true}", "has ref, commit, path, secret, submodules or lfs, which are for git"),
    ],
)
def test_what_does_not_belong_together_is_refused_with_its_place(code: str, why: str) -> None:
    with pytest.raises(JobFileError) as refused:
        loaded(f"{HEAD}code: {code}\n")
    assert "job.yaml:3:" in str(refused.value)
    assert why in str(refused.value)
