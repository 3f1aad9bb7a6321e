"""What is wrong with placeholders in URLs of inputs and in places of outputs."""

from muster.domain.data.job_input import LONGEST_INPUT_URL
from muster.domain.jobs.placeholders import EARLY, placeholder_names, written
from muster.domain.jobs.rules.job_values import Wrong
from muster.domain.quoting import nearest, quote

_LONGEST_VALUE = 64


def own_place(text: str) -> Wrong | None:
    """A URL or a place, in which values of one execution may be put."""
    names = list(placeholder_names(text))
    for name in names:
        if name not in EARLY:
            known = ", ".join(map(written, EARLY))
            meant = nearest(name, set(EARLY))
            message = f"has {quote(written(name))}, which nobody knows before the data is there; known are {known}"
            return Wrong(message, meant and written(meant))
    if names and len(text) + len(names) * _LONGEST_VALUE > LONGEST_INPUT_URL:
        return Wrong(f"may have more than {LONGEST_INPUT_URL} characters with the values of its placeholders")
    return None
