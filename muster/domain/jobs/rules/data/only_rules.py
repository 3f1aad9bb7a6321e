"""What is wrong with names with wildcards that say which outputs are wanted."""

from collections.abc import Iterator, Sequence

from muster.domain.data.job_source import MOST_ONLY
from muster.domain.data.pattern import NamePatternError, name_pattern
from muster.domain.fault import Fault, Path
from muster.domain.jobs.rules.job_values import Wrong


def only_name(text: str) -> Wrong | None:
    """A name with wildcards of files below an outputs directory."""
    try:
        whole = name_pattern(text).text
    except NamePatternError as error:
        return Wrong(str(error))
    if any(name in {"", ".", ".."} for name in whole.split("/")):
        return Wrong("must be a path below the outputs directory, like **/*.pt, without a / before it")
    return Wrong("holds characters that no name of a file has") if not whole.isprintable() else None


def only_faults(names: Sequence[str], where: Path) -> Iterator[Fault]:
    """Everything that is wrong with such names."""
    if len(names) > MOST_ONLY:
        yield Fault(path=where, message=f"has {len(names)} names; {MOST_ONLY} are the most")
        return
    for place, each in enumerate(names):
        if (wrong := only_name(each)) is not None:
            yield Fault(path=(*where, place), message=wrong.message)
