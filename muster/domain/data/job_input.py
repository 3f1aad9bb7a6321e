"""Inputs of jobs: files from elsewhere, and outputs of other jobs, that an execution finds before user code starts."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import unquote

from muster.domain.data.job_source import InputTree
from muster.domain.data.pattern import InputLayout

INPUTS_DIRECTORY = "/muster/inputs"
"""Where containers find them, each below its name."""
INPUTS_DIRECTORY_VARIABLE = "MUSTER_INPUTS_DIR"
"""The variable that tells user code where they are."""
INPUTS_FILE = "inputs.json"
"""The file beside the roster files that says what there is, in Valohai's form."""
MAX_INPUTS = 64
"""Inputs of one role."""
MOST_INPUT_URLS = 256
"""URLs of all inputs of one role."""
MOST_OWN_URLS = 1000
"""URLs of one role that name an execution by its rank or name, over all of its executions."""
LONGEST_INPUT_URL = 4096
"""Characters of a URL."""
S3_SCHEME, AZURE_SCHEME = "s3://", "az://"
BUCKET_SCHEMES = (S3_SCHEME, AZURE_SCHEME)
"""How URLs of objects of a store begin."""
LONGEST_LISTING = 512 * 1024
"""Characters of the list of objects that an input is."""
LARGEST_INPUT = 1 << 62
"""Bytes of one file, which no disk has."""

_URL = re.compile(r"https?://(?P<authority>[^/?#]+)/(?P<path>[^?#]*)(\?[^#]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInput:
    """Files, or outputs of another job, that each execution of a role finds, read-only."""

    name: str
    """Unique in the role; also the directory in which it lies."""
    url: str = ""
    """Where the file comes from, perhaps with placeholders; empty: it has several URLs, or is outputs of a job."""
    urls: tuple[str, ...] = ()
    """Where its files come from, if that is more than one URL."""
    source: str = ""
    """The job whose outputs it is, as `JOB_SOURCE` says; in an accepted job by its id. Empty: it is files."""
    only: tuple[str, ...] = ()
    """Names with wildcards of the outputs that are wanted; empty: all."""
    path: str | None = None
    """The directory in which a container has it; None: below `INPUTS_DIRECTORY`."""
    sha256: str = ""
    """What the file must hold; empty: whatever it holds when the job begins."""
    trees: tuple[InputTree, ...] = ()
    """What the outputs are; settled at the submit."""
    secret: str = ""
    """The secret of the project that opens its store, or the server of its file; empty: everybody may read it."""
    split: bool = False
    """Whether each execution of the role gets a part of the files alone; no file is in two of these parts."""
    layout: InputLayout = InputLayout.TAIL
    """Where objects lie below the directory."""

    @property
    def target(self) -> str:
        """The directory in which a container has it."""
        return self.path or f"{INPUTS_DIRECTORY}/{self.name}"

    @property
    def origin(self) -> str:
        """What the nodes of a job call it when they tell what it holds: with another secret it may be another file."""
        return f"{self.secret}@{self.url}" if self.secret else self.url

    @property
    def singly(self) -> tuple["JobInput", ...]:
        """The same as an input for each URL; none where it is outputs of a job."""
        if self.urls:
            return tuple(replace(self, url=url, urls=()) for url in self.urls)
        return (self,) if self.url else ()

    def filled(self, fill: Callable[[str], str]) -> "JobInput":
        """The same with values of one execution in its URLs."""
        return replace(self, url=fill(self.url), urls=tuple(map(fill, self.urls)))

    def shared_as(self, tree: str = "") -> str:
        """What the nodes of a gang call what they fetch of it together: a file, or the part of a tree that it wants."""
        return " ".join((tree, *self.only)) if tree else self.origin

    @property
    def is_in_bucket(self) -> bool:
        """Whether it is objects of a store."""
        return self.url.startswith(BUCKET_SCHEMES)

    @property
    def file_name(self) -> str:
        """What the file is called; empty for outputs of a job, and for objects."""
        return file_name(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundInput:
    """What a URL of a job was found to hold, which counts for all ranks and attempts."""

    url: str
    """The URL; where a secret opens it, `SECRET@URL`."""
    size: int
    sha256: str
    """SHA-256 of the file; of objects that of their list."""
    version: str = ""
    """What the server calls this version: its ETag, or when it was changed; empty: it does not say."""
    listing: str = ""
    """The list of its objects as nodes hand it on; empty for a file."""


def file_name(url: str) -> str:
    """The name of the file at a URL; empty where it names none."""
    found = _URL.fullmatch(url)
    return "" if found is None else unquote(found["path"].rpartition("/")[2])


def without_query(url: str) -> str:
    """A URL as people may see it: what follows the `?` may be a signature, but is a wildcard in a name of objects."""
    return url if url.startswith(BUCKET_SCHEMES) else url.partition("?")[0]
