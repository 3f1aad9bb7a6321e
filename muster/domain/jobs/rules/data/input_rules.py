"""What is wrong with the inputs of a role."""

import re
from collections.abc import Iterator

from muster.domain.data.buckets.bucket_url import BUCKET_NAME, read_bucket_url
from muster.domain.data.digest import is_digest
from muster.domain.data.job_input import (
    AZURE_SCHEME,
    BUCKET_SCHEMES,
    LONGEST_INPUT_URL,
    MAX_INPUTS,
    MOST_INPUT_URLS,
    MOST_OWN_URLS,
    JobInput,
    file_name,
    without_query,
)
from muster.domain.data.job_source import read_job_source
from muster.domain.data.pattern import InputLayout, NamePattern, NamePatternError
from muster.domain.data.tree import MalformedTreeError, refuse_bad_content_path
from muster.domain.fault import Fault, Path
from muster.domain.jobs.job import Role
from muster.domain.jobs.placeholders import OF_ONE, placeholder_names
from muster.domain.jobs.rules import job_values as values
from muster.domain.jobs.rules.data.covering import covering_faults, mount_places, secret_places
from muster.domain.jobs.rules.data.only_rules import only_faults
from muster.domain.jobs.rules.data.own_places import own_place
from muster.domain.jobs.rules.data.volume_rules import volume_path
from muster.domain.jobs.rules.job_values import Wrong
from muster.domain.jobs.rules.telling import told
from muster.domain.quoting import quote

INPUT_URL = rf"(https?://(?!/)[!-~]+|(s3|az)://{BUCKET_NAME}/.+)"
"""The pattern of URLs of inputs, as far as a pattern can tell."""
INPUT_SHA256 = r"[0-9a-f]{64}"
"""The pattern of what an input must hold."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HOST = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")


def input_url(url: str) -> Wrong | None:
    """A URL from which a file, or objects, can be fetched."""
    if wrong := _other_scheme(url):
        return wrong
    if len(url) > LONGEST_INPUT_URL:
        return Wrong(f"has {len(url)} characters; {LONGEST_INPUT_URL} are the most")
    return _objects_named(url) if url.startswith(BUCKET_SCHEMES) else _web_url(url)


def _web_url(url: str) -> Wrong | None:
    if re.fullmatch(INPUT_URL, url) is None or "#" in url:
        return Wrong("must be a URL like https://example.org/data.tar, with spaces and other letters as %20")
    authority = url.partition("://")[2].partition("/")[0].partition("?")[0]
    if "@" in authority:
        return Wrong("must not have a user or password in it: everybody who sees the job would see them")
    host = _HOST.fullmatch(authority)
    if host is None or not 0 < int(host["port"] or 1) <= values.MAX_PORT:
        return Wrong(f"has no host like example.org or example.org:8080, but {quote(authority)}")
    return _file_named(url)


def input_sha256(text: str) -> Wrong | None:
    """What `sha256sum` prints of a file."""
    return None if is_digest(text) else Wrong("must be the 64 digits that `sha256sum` prints, in lower case")


def input_source(text: str) -> Wrong | None:
    """The job whose outputs an input is."""
    if read_job_source(text) is not None:
        return None
    return Wrong(
        f"must be a job of one execution like train or job:k3j2v8xa, one execution like train/worker-0, or all of them "
        f"like train/*, not {quote(text)}"
    )


def input_faults(role: Role) -> Iterator[Fault]:
    """Everything that is wrong with a role's inputs, by paths below the role."""
    if len(role.inputs) > MAX_INPUTS:
        yield Fault(path=("inputs",), message=f"has {len(role.inputs)} inputs; {MAX_INPUTS} are the most")
        return
    names: set[str] = set()
    for each in role.inputs:
        where = ("inputs", each.name)
        if each.name in names:
            yield Fault(path=where, message="is there twice")
        names.add(each.name)
        yield from told(where, values.label(each.name))
        yield from _origin(each, where)
        yield from _place(role, each, where)
    yield from _few_urls(role)
    yield from _in_each_other(role)


def _few_urls(role: Role) -> Iterator[Fault]:
    """The coordinator keeps what each URL holds with the job, so there are not too many."""
    urls = [one for each in role.inputs for one in each.singly]
    if len(urls) > MOST_INPUT_URLS:
        message = f"have {len(urls)} URLs; {MOST_INPUT_URLS} are the most. Take URLs of a store with wildcards"
        yield Fault(path=("inputs",), message=message)
    own = [each for each in urls if set(placeholder_names(each.url)) & set(OF_ONE)]
    if len(own) * role.count > MOST_OWN_URLS:
        message = (
            f"have {len(own) * role.count} URLs, as each execution has its own; {MOST_OWN_URLS} are the most. "
            "Take one URL with wildcards and split: true"
        )
        yield Fault(path=("inputs",), message=message)


def _origin(each: JobInput, where: Path) -> Iterator[Fault]:
    if sum(map(bool, (each.url, each.urls, each.source))) != 1:
        yield Fault(path=where, message="needs exactly one of url and from")
    elif each.source:
        yield from told((*where, "from"), input_source(each.source))
        if each.sha256:
            yield Fault(path=(*where, "sha256"), message="stands beside from: outputs have their SHA-256 already")
        yield from only_faults(each.only, (*where, "only"))
        if each.secret:
            yield Fault(path=(*where, "secret"), message="stands beside from, which needs none; it is for url")
        if each.layout is not InputLayout.TAIL:
            yield Fault(path=(*where, "layout"), message="stands beside from: outputs lie as they were left")
    else:
        for place, one in enumerate(each.singly):
            at = (*where, "url", place) if each.urls else (*where, "url")
            yield from told(at, input_url(one.url) or own_place(one.url))
        yield from _in_one_place(each, where)
        yield from _opened_by(each, where)
        yield from _several(each, where)
        if each.sha256:
            yield from told((*where, "sha256"), input_sha256(each.sha256))
        if each.only or each.trees:
            yield Fault(path=(*where, "only"), message="stands beside url, which names files itself; it is for from")


def _in_one_place(each: JobInput, where: Path) -> Iterator[Fault]:
    """URLs of one input whose files would have one name, as far as that can be seen before anything is fetched."""
    taken: dict[str, str] = {}
    for place, url in enumerate(each.urls):
        name = _only_name(url, each.layout)
        first = taken.setdefault(name or url, url)
        if url in each.urls[:place]:
            yield Fault(path=(*where, "url", place), message="is there twice")
        elif first != url:
            message = (
                f"names the file {quote(name)}, as {quote(without_query(first))} does; take two inputs, which lie apart"
            )
            yield Fault(path=(*where, "url", place), message=message)


def _only_name(url: str, layout: InputLayout) -> str:
    """Where the only file of a URL lies in its input; empty where it may be several."""
    named = read_bucket_url(url)
    if named is None:
        return file_name(url)
    return "" if _may_be_several(url) else NamePattern(named.key).place(named.key, layout)


def _several(each: JobInput, where: Path) -> Iterator[Fault]:
    """What is wrong with what is said of several files, where it is one."""
    if each.layout is not InputLayout.TAIL and not any(one.is_in_bucket for one in each.singly):
        yield Fault(
            path=(*where, "layout"), message="stands beside a URL that is not s3:// or az://; it is for objects"
        )
    if each.split and each.url and not _may_be_several(each.url):
        message = "stands beside a URL that is one file, of which there are no parts; take wildcards, or a / at the end"
        yield Fault(path=(*where, "split"), message=message)


def _may_be_several(url: str) -> bool:
    named = read_bucket_url(url)
    return named is not None and bool(set("*?") & set(named.key) or named.key.endswith("/"))


def _opened_by(each: JobInput, where: Path) -> Iterator[Fault]:
    if each.secret:
        yield from told((*where, "secret"), values.label(each.secret))
    elif any(one.url.startswith(AZURE_SCHEME) for one in each.singly):
        message = "is missing: name the secret of kind azure that says which account has the container"
        yield Fault(path=(*where, "secret"), message=message)
    if each.sha256 and (each.urls or _may_be_several(each.url)):
        message = "stands beside what may be several files or objects; it is for one object, or one file"
        yield Fault(path=(*where, "sha256"), message=message)


def _objects_named(url: str) -> Wrong | None:
    named = read_bucket_url(url)
    if named is None:
        return Wrong("must name objects of a bucket, like s3://acme/data/train-*.tar or az://acme/data/")
    try:
        pattern = named.pattern
    except NamePatternError as error:
        return Wrong(f"cannot be used: {error}")
    path = named.key.removesuffix("/") if pattern.has_wildcards else named.key
    try:
        refuse_bad_content_path(path)
    except MalformedTreeError as error:
        return Wrong(f"names objects that cannot be files: {error}")
    return None


def _other_scheme(url: str) -> Wrong | None:
    found = _SCHEME.match(url)
    scheme = "" if found is None else found[1].lower()
    if scheme == "file":
        return Wrong("cannot be a file of the node; use `mounts` for directories of the node")
    if scheme in {"gs", "muster"}:
        return Wrong(
            f"cannot begin with {scheme}:// yet; files come from s3://, az://, http:// and https:// so far, and "
            "outputs of jobs by from"
        )
    return None


def _file_named(url: str) -> Wrong | None:
    name = file_name(url)
    if not name:
        return Wrong("names no file: the part behind the last / is what the file is called")
    if "/" in name:
        return Wrong(f"names the file {quote(name)}, and no file can have a / in its name")
    try:
        refuse_bad_content_path(name)
    except MalformedTreeError as error:
        return Wrong(f"names a file that cannot be: {error}")
    return None


def _place(role: Role, each: JobInput, where: Path) -> Iterator[Fault]:
    if each.path is None:
        return
    if role.image is None:
        message = "needs an image: a plain process finds the input below the directory in MUSTER_INPUTS_DIR"
        yield Fault(path=(*where, "path"), message=message)
    else:
        yield from told((*where, "path"), volume_path(each.path))


def _in_each_other(role: Role) -> Iterator[Fault]:
    """Inputs of which one would cover another one, or what else the container has there."""
    if role.image is not None:
        volumes = [(volume.target, f"the volume {volume.name}") for volume in role.volumes]
        places = [(each.name, each.target) for each in role.inputs]
        taken = [*mount_places(role), *volumes, *secret_places(role)]
        yield from covering_faults("inputs", "input", places, taken)
