"""Fixtures of the contract suites."""

from tests.docker_daemon import docker_socket

__all__ = ["docker_socket"]
