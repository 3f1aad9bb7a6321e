"""The program `muster`: its commands and global options.

What is heavy (gRPC, Rich, job files) is imported by the commands that need it, so that help and completion are quick.
"""

from pathlib import Path
from typing import Annotated

import typer

from muster import __version__
from muster.cli import jobs, logs, nodes, submit, up
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
            help="Whom to ask; otherwise what the last `muster up` started here, else 127.0.0.1:7460.",
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", envvar="MUSTER_INSECURE", help="Speak unencrypted beyond this machine, too."),
    ] = False,
    tls_ca: Annotated[
        Path | None,
        typer.Option(envvar="MUSTER_TLS_CA", help="Speak TLS; who signed the coordinator's certificate (PEM)."),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(envvar="MUSTER_TLS_CERT", help="Your certificate (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(envvar="MUSTER_TLS_KEY", help="Its key (PEM).")] = None,
) -> None:
    """Keep the global options for the command."""
    if tls_ca is None and tls_cert is not None:
        raise typer.BadParameter("--tls-cert needs --tls-ca")
    if (tls_cert is None) != (tls_key is None):
        raise typer.BadParameter("--tls-cert and --tls-key belong together")
    context.obj = Session(
        coordinator=coordinator,
        insecure=insecure,
        tls_ca=tls_ca,
        tls_cert=tls_cert,
        tls_key=tls_key,
    )


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
app.command()(submit.schema)
app.command()(up.demo)


@app.command()
def version() -> None:
    """Print the version of this program."""
    print(__version__)


def main() -> None:
    """The entry point of the console script."""
    app()
