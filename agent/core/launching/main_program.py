"""What the executions of an interactive job run: its setup first, then its command, or a program that waits."""

from dataclasses import replace

from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.job import Role

SETUP_FAILED = ".setup-failed"
"""File among the outputs of an execution that is there once its setup has failed, until its agent has seen that."""

_SETUP = """\
/bin/sh -c "$1" || {
  code=$?
  echo "muster: interactive.setup ended with exit code $code" >&2
  echo "$code" > "$2"
  exit "$code"
}
shift 2
exec "$@"
"""
"""The script that runs a setup, and in its own place the main program. What the setup leaves in the background goes on.

Nothing is set that the main program would find among its variables.
"""


def with_main_program(role: Role, who: Assignment, site: LaunchSite) -> Role:
    """The role of an execution, with a command that waits where an interactive job gives none."""
    if who.interactive is None or role.command:
        return role
    return replace(role, entrypoint=None if role.image is None else (), command=(site.inside, "wait"))


def setup_words(who: Assignment, site: LaunchSite) -> tuple[str, ...]:
    """Words before the main program that run the setup first; none where there is no setup."""
    if who.interactive is None or not who.interactive.setup:
        return ()
    return ("/bin/sh", "-c", _SETUP, "setup", who.interactive.setup, f"{site.outputs}/{SETUP_FAILED}")
