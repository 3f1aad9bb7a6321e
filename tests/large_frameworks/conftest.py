"""Fixtures of the large frameworks."""

from tests.frameworks.conftest import machines

__all__ = ["machines"]
