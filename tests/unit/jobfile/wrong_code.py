"""Jobs with something wrong in where their code comes from, each with the beginning of the sentence that says what."""

from collections.abc import Sequence

from muster.domain.data.code import GitCode, JobCode
from muster.domain.jobs.job import InlineFile, JobSpec
from tests.unit.jobfile.wrong_jobs import CONTAINER, job, role

URL = "https://git.example.org/team/train.git"
ADDRESS = "roles[0].code.git: must be an address like https://git.example.org/team/train.git"
SHARED = JobCode(git=GitCode(url=URL), writable=False)


def code(url: str = URL, ref: str = "", commit: str = "", path: str = "", secret: str = "") -> JobSpec:
    return role(job(), code=JobCode(git=GitCode(url=url, ref=ref, commit=commit, path=path, secret=secret)))


WRONG_CODE: Sequence[tuple[JobSpec, str]] = (
    *(
        (code(url), ADDRESS)
        for url in (
            "http://git.example.org/train.git",
            "git://git.example.org/train.git",
            "file:///srv/train.git",
            "/srv/train.git",
            "ext::sh -c id",
            "https://git.example.org",
            "https://git.example.org:0/train.git",
            "https://git.example.org/train.git?x=1",
            "https://git.example.org/a b",
            "https://-oProxyCommand=id/train.git",
            "ssh://-oProxyCommand=id/train.git",
            "ssh://git@-oProxyCommand=id/train.git",
            "https://git.example.org/train.git\n",
        )
    ),
    (
        code("https://robot:t0k3n@git.example.org/train.git"),
        "roles[0].code.git: must not have a user or password in it",
    ),
    (code("ssh://git:word@git.example.org/train.git"), "roles[0].code.git: must not have a password in it"),
    (code("git@github.com:team/train.git"), "roles[0].code.git: must be a URL, which for"),
    (code(f"https://git.example.org/{'a' * 2048}"), "roles[0].code.git: has 2072 characters; 2048 are the most"),
    *(
        (code(ref=ref), "roles[0].code.ref: must be a branch, a tag or the 40 digits of a commit")
        for ref in ("--upload-pack=id", "-x", "a b", "a..b", "a:b", "a^", "a~1", "main@{1}", "a.lock", "/a", "a/")
    ),
    (code(ref="a" * 256), "roles[0].code.ref: has 256 characters; 255 are the most"),
    (code(commit="1f2e3d"), "roles[0].code.commit: must be the 40 digits of a commit, in lower case"),
    (code(path="/lib"), "roles[0].code.path: must be a directory of the repository"),
    (code(path="lib/../../etc"), "roles[0].code.path: must be a directory of the repository"),
    (code(secret="My Secret"), "roles[0].code.secret: must be 1 to 63 lower-case letters"),
    (
        code("ssh://git@git.example.org/train.git"),
        "roles[0].code.secret: is missing: ssh:// needs a secret of kind git",
    ),
    (
        role(job(), code=JobCode(git=GitCode(url="ssh://git@git.example.org/a.git", lfs=True, secret="deploy"))),
        "roles[0].code.lfs: is only for https://",
    ),
    (
        role(job(), code=SHARED, files=(InlineFile(path="a.json", content=b""),)),
        'roles[0].files[0].path: "a.json" would lie in the code, which nobody may write to',
    ),
    (
        role(CONTAINER, code=SHARED, workdir="/muster/code/src", files=(InlineFile(path="lib/a.json", content=b""),)),
        'roles[0].files[0].path: "lib/a.json" would lie in the code, which nobody may write to',
    ),
)
