"""The program `muster`: its commands and global options.

What is heavy (gRPC, Rich, job files) is imported by the commands that need it, so that help and completion are quick.
"""

from typing import Annotated

import typer

from muster import __version__
from muster.cli import bundles, jobs, login, logs, nodes, policies, secrets, submit, trust, up
from muster.cli.session import Session

app = typer.Typer(
    name="muster",
    help="Gathers the machines you own, calls the roll, and starts every worker of a distributed job at once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    context: typer.Context,
    *,
    coordinator: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            envvar="MUSTER_COORDINATOR",
            help="Whom to ask; otherwise what `muster up` runs here, else that of the last `muster login`.",
        ),
    ] = None,
) -> None:
    """Keep the global options for the command."""
    context.obj = Session(coordinator=coordinator)


app.command()(up.up)
app.command()(submit.submit)
app.command(context_settings={"allow_interspersed_args": False})(submit.run)
app.command()(jobs.jobs)
app.command()(jobs.show)
app.command()(jobs.why)
app.command()(logs.logs)
app.command()(jobs.wait)
app.command()(jobs.stop)
app.command()(jobs.delete)
app.add_typer(nodes.nodes)
app.add_typer(trust.users, name="users")
app.add_typer(trust.accounts, name="accounts")
app.add_typer(trust.tokens, name="tokens")
trust.projects.command("allow")(policies.allow)
app.add_typer(trust.projects, name="projects")
app.add_typer(secrets.secrets, name="secrets")
app.command()(trust.audit)
app.add_typer(bundles.bundle, name="bundle")
app.command()(login.init)
app.command()(login.login)
app.command()(login.logout)
app.command()(login.whoami)
app.command()(submit.schema)
app.command()(up.demo)


@app.command()
def version() -> None:
    """Print the version of this program."""
    print(__version__)


def main() -> None:
    """The entry point of the console script."""
    app()
