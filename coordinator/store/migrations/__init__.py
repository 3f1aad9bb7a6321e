"""The history of the schema: every file in `versions` brings a database from one version to the next."""

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection


def upgrade(connection: Connection, version: str = "head", *, folder: str = "") -> None:
    """Bring the database to a version, the newest by default, within the caller's transaction.

    `folder` has further migrations, if there are any beside those of this program.
    """
    config = _config(folder)
    config.attributes["connection"] = connection
    command.upgrade(config, version)


def known(folder: str = "") -> tuple[str, ...]:
    """All versions, newest first."""
    return tuple(script.revision for script in ScriptDirectory.from_config(_config(folder)).walk_revisions())


def _config(folder: str) -> Config:
    config = Config()
    config.set_main_option("script_location", "coordinator.store:migrations")
    config.set_main_option("path_separator", "newline")
    if folder:
        config.set_main_option("version_locations", f"coordinator.store:migrations/versions\n{folder}")
    return config
