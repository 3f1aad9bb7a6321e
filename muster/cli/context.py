"""What every command stands on: the coordinator it asks, and how its errors end."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

import typer

from muster.cli.exit_codes import ExitCode, code_of_error
from muster.cli.output.screen import print_dim, say_lines
from muster.cli.streams import drop_unwritable, sentence_of
from muster.domain.errors import MusterError

if TYPE_CHECKING:
    from muster.client.client import Client

_P = ParamSpec("_P")


class CliContext(NamedTuple):
    """The global options."""

    coordinator: str | None = None

    def client(self, *, timeout: float = 10.0) -> "Client":
        """A client of the coordinator that this command asks."""
        from muster.client.connection import Connection

        connection = Connection(self.coordinator)
        connection.on_token_ends = _Warned()
        connection.dial()
        from muster.client.client import Client

        return Client(timeout=timeout, connection=connection)


class _Warned:
    """Says on stderr, once, that the token of this command is about to end."""

    def __init__(self) -> None:
        self._said = False

    def __call__(self, when: str) -> None:
        if not self._said:
            self._said = True
            from muster.cli.output.units import time_text

            try:
                ends = time_text(datetime.fromisoformat(when))
            except ValueError:  # a coordinator that writes times in another way
                ends = when
            print_dim(
                f"warning: your token ends at {ends}; make the next one with `muster tokens create`, or ask "
                "an admin for one"
            )


def session_of(context: typer.Context) -> CliContext:
    """The global options of the command line that `context` belongs to."""
    session = context.find_root().obj
    return session if isinstance(session, CliContext) else CliContext()


def answers(command: Callable[_P, Coroutine[Any, Any, int | None]]) -> Callable[_P, None]:
    """A command from a coroutine function: errors become one line on stderr and an exit code."""

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            code = asyncio.run(command(*args, **kwargs))
        except (MusterError, OSError, ExceptionGroup) as error:
            code = report(error)
        except KeyboardInterrupt:
            code = ExitCode.INTERRUPTED
        if code:
            raise typer.Exit(code)

    return run


def report(error: Exception) -> ExitCode:
    """Tell the user what went wrong; an error that nobody foresaw is raised again."""
    known = _first_known(error)
    if known is None:
        raise error
    if isinstance(known, BrokenPipeError):
        drop_unwritable()
        return ExitCode.PIPE_CLOSED
    if isinstance(known, OSError):
        drop_unwritable()
        say_lines(f"error: {sentence_of(known)}\n", err=True)
        return ExitCode.JOB_FAILED
    say_lines(f"error: {known}\n", err=True)
    return code_of_error(known)


def _first_known(error: BaseException) -> MusterError | OSError | None:
    if isinstance(error, BaseExceptionGroup):
        return next((known for known in map(_first_known, error.exceptions) if known is not None), None)
    return error if isinstance(error, (MusterError, OSError)) else None
