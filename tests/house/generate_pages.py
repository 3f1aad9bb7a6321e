"""Build the pages of the console: `python tests/house/generate_pages.py` (`make web`)."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.house.page_types import page_types
from tests.integration.npm_packages import installed, node

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
PAGES = ROOT / "console" / "pages"
SOURCES = PAGES / "SOURCES"
"""The digest of what the pages were built from, for whoever has no Node.js."""
TYPES = "src/api/types.ts"
"""The types of calls. They are printed for each build: whoever changes a route has nothing to commit here."""
BUILD_LIMIT = 120.0


class BuildError(Exception):
    """The sources cannot be built; the message is that of the compiler."""


def sources() -> Mapping[str, bytes]:
    """All that the pages are built from, by path.

    The types of calls are not among it: what is built has none of them.
    """
    paths = [path for path in sorted(WEB.rglob("*")) if path.is_file() and path.suffix != ".md"]
    below = [(path.relative_to(WEB), path) for path in paths]
    found = {name.as_posix(): path for name, path in below if "node_modules" not in name.parts}
    return {name: path.read_bytes() for name, path in found.items() if name != TYPES}


def looked_at() -> Mapping[str, bytes]:
    """The same, with the types of calls that the compiler holds them against."""
    return {**sources(), TYPES: page_types().encode()}


def digest(files: Mapping[str, bytes]) -> str:
    """One line that is another one for other files."""
    whole = hashlib.sha256()
    for name, content in sorted(files.items()):
        whole.update(f"{name}\0{len(content)}\0".encode() + content)
    return whole.hexdigest() + "\n"


def build() -> Mapping[str, bytes]:
    """The pages as their sources give them, by path, once the compiler and their own tests have nothing to say.

    Raises BuildError. The test that asks for it is skipped where Node.js is not there.
    """
    program, packages = node(), installed(WEB, ("package.json", "package-lock.json", ".npmrc"))
    with tempfile.TemporaryDirectory() as made:
        place = Path(made) / "web"
        shutil.copytree(WEB, place, ignore=shutil.ignore_patterns("node_modules"))
        (place / TYPES).write_text(page_types())
        (place / "node_modules").symlink_to(packages / "node_modules")
        for words in (("node_modules/typescript/bin/tsc", "-p", "."), ("test.mjs",), ("build.mjs", f"{made}/pages")):
            done = subprocess.run(
                [program, *words], cwd=place, capture_output=True, text=True, timeout=BUILD_LIMIT, check=False
            )
            if done.returncode:
                raise BuildError(f"{words[0]}: {done.stdout}{done.stderr}")
        files = {str(path.relative_to(f"{made}/pages")): path for path in Path(made, "pages").rglob("*")}
        found = {name: path.read_bytes() for name, path in files.items() if path.is_file()}
    return found | {SOURCES.name: digest(sources()).encode()}


def committed() -> Mapping[str, bytes]:
    """The pages that the console serves, by path."""
    return {str(path.relative_to(PAGES)): path.read_bytes() for path in PAGES.rglob("*") if path.is_file()}


def main() -> None:
    """Build them, and put them where the console serves them from."""
    (WEB / TYPES).write_text(page_types())  # for editors
    try:
        fresh = build()
    except BuildError as error:
        sys.exit(str(error))
    shutil.rmtree(PAGES, ignore_errors=True)
    for name, content in fresh.items():
        file = PAGES / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


if __name__ == "__main__":
    main()
