"""What an installation of the repository's root requires: all that its distributions require of others."""

import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_OWN = "muster-"


class WorkspaceMetadata(MetadataHookInterface):
    """Hatch's hook that fills in dependencies, extras and programs."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Take them from the distributions; the root adds what those need who work on Muster."""
        projects = [_project(file) for file in sorted(Path(self.root, "packages").glob("*/pyproject.toml"))]
        required = {each for project in projects for each in project["dependencies"] if not each.startswith(_OWN)}
        extras = {name: list(each) for name, each in self.config["extras"].items()}
        for project in projects:
            extras |= project.get("optional-dependencies", {})
        metadata["dependencies"] = sorted(required)
        metadata["optional-dependencies"] = extras
        metadata["scripts"] = {name: target for project in projects for name, target in project["scripts"].items()}


def _project(file: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads(file.read_text())["project"]
    return project
