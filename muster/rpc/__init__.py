"""What travels between the programs: generated stubs, and the channel options that both ends share.

Protobuf loads its messages in plain Python even where it has them in C, and with them all that reads and writes
messages as text. Here they are loaded if they are used.
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


if not hasattr(internal, _PLAIN):
    setattr(internal, _PLAIN, _Later(f"{internal.__name__}.{_PLAIN}"))
