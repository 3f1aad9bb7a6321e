"""The program `muster`, run in the process of the test."""

from typer.testing import CliRunner, Result

from muster.cli.program import program
from tests.integration.canned_coordinator import Canned


class Muster:
    """The command line and the coordinator that it asks."""

    def __init__(self, canned: Canned, address: str) -> None:
        self.canned = canned
        self.address = address
        self.environment = {"MUSTER_COORDINATOR": address, "MUSTER_HOME": "/nowhere", "COLUMNS": "200"}

    def __call__(self, *arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(program(arguments), arguments, env=self.environment, input=stdin)
