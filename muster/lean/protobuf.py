"""Protobuf without its messages in plain Python: 26 ms and 3 MB less for each program.

Protobuf loads them even where it has messages in C, and with them all that reads and writes messages as text. Here they
are loaded if they are used.
"muster jobs, warm coordinator, whole process" of `make bench ONLY=resident` pays for this.
"""

from importlib import import_module

from google.protobuf import internal

_PLAIN = "python_message"


class _Later:
    """Stands for a module until something in it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        return getattr(import_module(self._name), attribute)


def leave_plain_messages_out() -> None:
    """Have protobuf load them only when something in them is asked for; harmless when repeated."""
    if not hasattr(internal, _PLAIN):
        setattr(internal, _PLAIN, _Later(f"{internal.__name__}.{_PLAIN}"))
