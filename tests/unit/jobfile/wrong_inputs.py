"""Jobs with something wrong in their inputs, each with the beginning of the sentence that says what."""

from collections.abc import Sequence
from typing import Any

from muster.domain.data.job_input import MAX_INPUTS, MOST_INPUT_URLS, JobInput
from muster.domain.data.pattern import InputLayout
from muster.domain.data.volume import Volume
from muster.domain.jobs.job import JobSpec, Mount
from tests.unit.jobfile.wrong_jobs import CONTAINER, PROCESS, role

URL = "https://example.org/a.tar"


def inputs(*inputs: JobInput, spec: JobSpec = CONTAINER, **changes: Any) -> JobSpec:
    return role(spec, inputs=inputs, **changes)


def with_url(url: str) -> JobSpec:
    return inputs(JobInput(name="a", url=url))


def with_urls(*urls: str, **more: Any) -> JobSpec:
    return inputs(JobInput(name="a", urls=urls, **more))


def many(place: int, count: int) -> tuple[str, ...]:
    return tuple(f"https://example.org/{place}/{number}" for number in range(count))


def of_job(source: str, **more: Any) -> JobSpec:
    return inputs(JobInput(name="a", source=source, **more))


WRONG_INPUTS: Sequence[tuple[JobSpec, str]] = (
    (
        inputs(*(JobInput(name=f"i{number:02}", url=URL) for number in range(MAX_INPUTS + 1))),
        "roles[0].inputs: has 65 inputs; 64 are the most",
    ),
    (inputs(JobInput(name="A", url=URL)), "roles[0].inputs.A: must be 1 to 63 lower-case letters"),
    (with_url("example.org/a"), "roles[0].inputs.a.url: must be a URL like https://example.org/data.tar"),
    (with_url("https://example.org/a b"), "roles[0].inputs.a.url: must be a URL like https://example.org/data.tar"),
    (with_url("file:///etc/passwd"), "roles[0].inputs.a.url: cannot be a file of the node; use `mounts`"),
    (with_url("gs://acme/a"), "roles[0].inputs.a.url: cannot begin with gs:// yet"),
    (
        with_url("s3://acme/{{muster:rnk}}"),
        'roles[0].inputs.a.url: has "{{muster:rnk}}", which nobody knows before the data is there',
    ),
    (
        inputs(JobInput(name="a", url="https://a.b/{{muster:rank}}"), count=1001),
        "roles[0].inputs: have 1001 URLs, as each execution has its own; 1000 are the most",
    ),
    (with_url("az://acme/a"), "roles[0].inputs.a.secret: is missing: name the secret of kind azure"),
    (with_url("s3://acme"), "roles[0].inputs.a.url: must name objects of a bucket"),
    (with_url("s3://a/b"), "roles[0].inputs.a.url: must name objects of a bucket"),
    (with_url("s3://acme/a**.tar"), "roles[0].inputs.a.url: cannot be used: 'a**.tar': `**` stands for whole segments"),
    (with_url("s3://acme/a//b"), "roles[0].inputs.a.url: names objects that cannot be files"),
    (with_url("s3://acme/../b"), "roles[0].inputs.a.url: names objects that cannot be files"),
    (inputs(JobInput(name="a", url=URL, secret="a b")), "roles[0].inputs.a.secret: must be 1 to 63 lower-case letters"),
    (of_job("train", secret="store"), "roles[0].inputs.a.secret: stands beside from"),
    (
        inputs(JobInput(name="a", url="s3://acme/a", secret="My Store")),
        "roles[0].inputs.a.secret: must be 1 to 63 lower-case letters",
    ),
    (
        inputs(JobInput(name="a", url="s3://acme/a/", sha256="5" * 64)),
        "roles[0].inputs.a.sha256: stands beside what may be several files or objects",
    ),
    (
        inputs(JobInput(name="a", url=URL, split=True)),
        "roles[0].inputs.a.split: stands beside a URL that is one file, of which there are no parts",
    ),
    (
        inputs(JobInput(name="a", url="s3://acme/a.tar", split=True)),
        "roles[0].inputs.a.split: stands beside a URL that is one file, of which there are no parts",
    ),
    (
        inputs(JobInput(name="a", url=URL, layout=InputLayout.FLAT)),
        "roles[0].inputs.a.layout: stands beside a URL that is not s3://",
    ),
    (of_job("train", layout=InputLayout.FULL), "roles[0].inputs.a.layout: stands beside from"),
    (with_url("https://me:secret@example.org/a"), "roles[0].inputs.a.url: must not have a user or password in it"),
    (with_url("https://example.org:99999/a"), "roles[0].inputs.a.url: has no host like example.org"),
    (with_url("https://example.org/"), "roles[0].inputs.a.url: names no file"),
    (with_url("https://example.org/a/%2e%2e"), "roles[0].inputs.a.url: names a file that cannot be"),
    (with_url("https://example.org/a%2Fb"), "roles[0].inputs.a.url: names the file"),
    (with_url(f"https://example.org/{'a' * 5000}"), "roles[0].inputs.a.url: has 5020 characters; 4096 are the most"),
    (inputs(JobInput(name="a", url=URL, sha256="A" * 64)), "roles[0].inputs.a.sha256: must be the 64 digits"),
    (inputs(JobInput(name="a")), "roles[0].inputs.a: needs exactly one of url and from"),
    (of_job("train", url=URL), "roles[0].inputs.a: needs exactly one of url and from"),
    (with_urls(URL, "gs://acme/a"), "roles[0].inputs.a.url[1]: cannot begin with gs:// yet"),
    (with_urls(URL, "https://example.org/b", URL), "roles[0].inputs.a.url[2]: is there twice"),
    (with_urls("s3://acme/a/", "s3://acme/a/"), "roles[0].inputs.a.url[1]: is there twice"),
    (
        with_urls("https://example.org/v1/a.tar?key=x", "https://example.org/v2/a.tar"),
        'roles[0].inputs.a.url[1]: names the file "a.tar", as "https://example.org/v1/a.tar" does; take two inputs',
    ),
    (with_urls(URL, "s3://acme/x/a.tar"), 'roles[0].inputs.a.url[1]: names the file "a.tar", as'),
    (
        with_urls("s3://acme/v1/a", "s3://acme/v2/a", layout=InputLayout.FLAT),
        'roles[0].inputs.a.url[1]: names the file "a", as "s3://acme/v1/a" does',
    ),
    (with_urls(URL, "az://acme/b"), "roles[0].inputs.a.secret: is missing: name the secret of kind azure"),
    (
        with_urls(URL, "https://example.org/b", layout=InputLayout.FLAT),
        "roles[0].inputs.a.layout: stands beside a URL that is not s3://",
    ),
    (
        with_urls(URL, "https://example.org/b", sha256="5" * 64),
        "roles[0].inputs.a.sha256: stands beside what may be several files or objects",
    ),
    (
        inputs(*(JobInput(name=f"i{place}", urls=many(place, MOST_INPUT_URLS // 2 + 1)) for place in range(2))),
        "roles[0].inputs: have 258 URLs; 256 are the most",
    ),
    (of_job("Train"), "roles[0].inputs.a.from: must be a job of one execution like train"),
    (of_job("train/worker"), "roles[0].inputs.a.from: must be a job of one execution like train"),
    (of_job("train/worker-01"), "roles[0].inputs.a.from: must be a job of one execution like train"),
    (of_job("train", sha256="5" * 64), "roles[0].inputs.a.sha256: stands beside from"),
    (of_job("train", only=("a**",)), "roles[0].inputs.a.only[0]: 'a**': `**` stands for whole segments"),
    (of_job("train", only=("a", "/b")), "roles[0].inputs.a.only[1]: must be a path below the outputs directory"),
    (of_job("train", only=("a\n",)), "roles[0].inputs.a.only[0]: holds characters that no name of a file has"),
    (of_job("train", only=("a",) * 33), "roles[0].inputs.a.only: has 33 names; 32 are the most"),
    (inputs(JobInput(name="a", url=URL, only=("a",))), "roles[0].inputs.a.only: stands beside url"),
    (inputs(JobInput(name="a", url=URL, path="b")), "roles[0].inputs.a.path: must be an absolute path"),
    (inputs(JobInput(name="a", url=URL, path="/proc/x")), 'roles[0].inputs.a.path: "/proc/x" is the system'),
    (inputs(JobInput(name="a", url=URL, path="/b"), spec=PROCESS), "roles[0].inputs.a.path: needs an image"),
    (
        inputs(JobInput(name="a", url=URL, path="/b"), JobInput(name="c", url=URL, path="/b/c")),
        "roles[0].inputs.c: lies at /b/c, where the input a is",
    ),
    (
        inputs(JobInput(name="a", url=URL, path="/b"), mounts=(Mount(source="/a", target="/b/c"),)),
        "roles[0].inputs.a: lies at /b, where the mount at /b/c is",
    ),
    (
        inputs(JobInput(name="a", url=URL, path="/b"), volumes=(Volume(name="v", path="/b", size=2**30),)),
        "roles[0].inputs.a: lies at /b, where the volume v is",
    ),
)
