"""Muster: gathers machines, calls the roll, and starts every worker of a distributed job at once."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.client.client import Client
    from muster.rpc.channel import Credentials

__version__ = "0.1.0"

_LAZY = {"Client": "muster.client.client", "Credentials": "muster.rpc.channel"}
"""Loaded when first asked for, so that `import muster.worker` in a container needs nothing but the standard library."""

__all__ = ["Client", "Credentials", "__version__"]


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    return getattr(import_module(module), name)
