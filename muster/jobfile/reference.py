"""The reference of the job file's keys in Markdown, from the models.

`python -m muster.jobfile.reference --write docs/job-file.md` refreshes the part between the two markers; a house test
fails while the page is behind the models.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from muster.jobfile.data.code_keys import CodeKeys
from muster.jobfile.lent_keys import (
    CheckpointKeys,
    InputKeys,
    MountKeys,
    OutputsKeys,
    SecretKeys,
    UlimitKeys,
    VolumeKeys,
)
from muster.jobfile.models import (
    FileKeys,
    JobKeys,
    PortKeys,
    RoleDefaults,
    RoleKeys,
)
from muster.jobfile.section import (
    AffinityKeys,
    ExitCodesKeys,
    FrameworkKeys,
    InteractiveKeys,
    LabelExpressionKeys,
    OnPreemptKeys,
    PoolKeys,
    PreferredTermKeys,
    ResourcesKeys,
    RestartsKeys,
    SecurityKeys,
    TimeoutsKeys,
    TolerationKeys,
    TopologyKeys,
    UseKeys,
    keys_of,
)

BEGIN = "<!-- keys: made by `python -m muster.jobfile.reference --write docs/job-file.md` -->"
END = "<!-- end of keys -->"

_SECTIONS: Sequence[tuple[str, type[BaseModel], type[BaseModel] | None]] = (
    ("The job", JobKeys, RoleDefaults),
    ("What executions run", RoleDefaults, None),
    ("`roles[]`", RoleKeys, RoleDefaults),
    ("`use`", UseKeys, None),
    ("`resources`", ResourcesKeys, None),
    ("`ports[]`", PortKeys, None),
    ("`mounts[]`", MountKeys, None),
    ("`volumes.NAME`", VolumeKeys, None),
    ("`inputs.NAME`", InputKeys, None),
    ("`ulimits.NAME`", UlimitKeys, None),
    ("`files[]`", FileKeys, None),
    ("`code`", CodeKeys, None),
    ("`outputs`", OutputsKeys, None),
    ("`checkpoint`", CheckpointKeys, None),
    ("`secrets[]`", SecretKeys, None),
    ("`security`", SecurityKeys, None),
    ("`framework`", FrameworkKeys, None),
    ("`interactive`", InteractiveKeys, None),
    ("`pools[]`", PoolKeys, None),
    ("`tolerations[]`", TolerationKeys, None),
    ("`affinity`", AffinityKeys, None),
    ("`affinity.preferred[]`", PreferredTermKeys, None),
    ("`affinity.required[][]`, `affinity.preferred[].all[]`", LabelExpressionKeys, None),
    ("`topology`", TopologyKeys, None),
    ("`timeouts`", TimeoutsKeys, None),
    ("`restarts`", RestartsKeys, None),
    ("`on_preempt`", OnPreemptKeys, None),
    ("`exit_codes`", ExitCodesKeys, None),
)
"""Heading, keys, and the keys that another section already lists."""


def tables() -> str:
    """A section with a table for every map of a job file."""
    return "\n".join(_section(*section) for section in _SECTIONS)


def refreshed(page: str) -> str:
    """The page with the part between the markers made anew; raises ValueError for a page without them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no part between {BEGIN} and {END}")
    return f"{before}{begin}\n\n{tables()}\n{end}{after}"


def main(arguments: Sequence[str]) -> int:
    """Print the tables, or with `--write PAGE` put them into a page."""
    match arguments:
        case []:
            sys.stdout.write(tables())
        case ["--write", name]:
            page = Path(name)
            page.write_text(refreshed(page.read_text()))
        case _:
            sys.stderr.write("usage: python -m muster.jobfile.reference [--write PAGE]\n")
            return 2
    return 0


def _section(heading: str, model: type[BaseModel], elsewhere: type[BaseModel] | None) -> str:
    listed = keys_of(elsewhere) if elsewhere else {}
    rows = [_row(key, info) for key, info in keys_of(model).items() if key not in listed]
    head = ["| key | value | default | meaning |", "|---|---|---|---|"]
    return "\n".join([f"### {heading}", "", model.__doc__ or "", "", *head, *rows, ""])


def _row(key: str, info: FieldInfo) -> str:
    cells = (f"`{key}`", info.title or "", _default(info), info.description or "")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    if info.default in (None, [], {}, ""):
        return ""
    return f"`{str(info.default).lower() if isinstance(info.default, bool) else info.default}`"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
