"""Which commit the code of a job is: the first word counts, for every role and attempt."""

from dataclasses import replace

from coordinator.core.data_events import CodeFetched
from muster.domain.data.code import GitCode, JobCode
from muster.domain.jobs.job import JobSpec
from tests.builders import World, spec

GIT = GitCode(url="https://git.example.org/train.git", ref="main")
OTHER = replace(GIT, path="lib")


def found(git: GitCode, digit: str) -> JobCode:
    return JobCode(git=replace(git, commit=digit * 40), tree=digit * 64, size=80)


def gang() -> JobSpec:
    whole = spec(name="with-git")
    [role] = whole.roles
    codes = (GIT, GIT, OTHER)
    roles = (replace(role, name=f"r{place}", code=JobCode(git=git)) for place, git in enumerate(codes))
    return replace(whole, roles=tuple(roles))


def test_the_first_word_counts_for_all_roles_that_name_the_same() -> None:
    w = World(("a", 0))
    job = w.submit(gang())
    w.turn(CodeFetched(job=job, asked=GIT, found=found(GIT, "a")))
    w.turn(CodeFetched(job=job, asked=GIT, found=found(GIT, "b")))

    kept = w.cluster.jobs[job]
    assert [role.code for role in kept.spec.roles] == [found(GIT, "a"), found(GIT, "a"), JobCode(git=OTHER)]
    assert kept.submitted == gang()
