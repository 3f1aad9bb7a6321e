"""Inputs of jobs: files from elsewhere, and outputs of other jobs, that an execution finds before user code starts."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from muster.domain.data.job_source import InputTree

INPUTS_DIRECTORY = "/muster/inputs"
"""Where containers find them, each below its name."""
INPUTS_DIRECTORY_VARIABLE = "MUSTER_INPUTS_DIR"
"""The variable that tells user code where they are."""
INPUTS_FILE = "inputs.json"
"""The file beside the roster files that says what there is, in Valohai's form."""
MAX_INPUTS = 64
"""Inputs of one role."""
LONGEST_INPUT_URL = 4096
"""Characters of a URL."""
LARGEST_INPUT = 1 << 62
"""Bytes of one file, which no disk has."""

_URL = re.compile(r"https?://(?P<authority>[^/?#]+)/(?P<path>[^?#]*)(\?[^#]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInput:
    """A file, or outputs of another job, that each execution of a role finds, read-only."""

    name: str
    """Unique in the role; also the directory in which it lies."""
    url: str = ""
    """Where the file comes from; empty: it is outputs of a job."""
    source: str = ""
    """The job whose outputs it is, as `JOB_SOURCE` says; in an accepted job by its id. Empty: it is a file."""
    only: tuple[str, ...] = ()
    """Names with wildcards of the outputs that are wanted; empty: all."""
    path: str | None = None
    """The directory in which a container has it; None: below `INPUTS_DIRECTORY`."""
    sha256: str = ""
    """What the file must hold; empty: whatever it holds when the job begins."""
    trees: tuple[InputTree, ...] = ()
    """What the outputs are; settled at the submit."""

    @property
    def target(self) -> str:
        """The directory in which a container has it."""
        return self.path or f"{INPUTS_DIRECTORY}/{self.name}"

    @property
    def file_name(self) -> str:
        """What the file is called; empty for outputs of a job."""
        return file_name(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundInput:
    """What a URL of a job was found to hold, which counts for all ranks and attempts."""

    url: str
    size: int
    sha256: str
    version: str = ""
    """What the server calls this version: its ETag, or when it was changed; empty: it does not say."""


def file_name(url: str) -> str:
    """The name of the file at a URL; empty where it names none."""
    found = _URL.fullmatch(url)
    return "" if found is None else unquote(found["path"].rpartition("/")[2])


def without_query(url: str) -> str:
    """A URL as people may see it: what follows the `?` may be a signature."""
    return url.partition("?")[0]
