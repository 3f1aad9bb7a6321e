"""Fixtures of the contract suites."""

# Hypothesis' pytest plugin imports it after the last test, where Python 3.11 may fail to parse it when garbage with
# finalizers is collected meanwhile (python/cpython#106905), and connections leave such garbage.
import hypothesis  # noqa: F401 - before the tests, as said above

from tests.contract.stores import open_store, store
from tests.docker_daemon import docker_socket

__all__ = ["docker_socket", "open_store", "store"]
