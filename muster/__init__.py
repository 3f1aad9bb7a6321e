"""Muster: gathers machines, calls the roll, and starts every worker of a distributed job at once."""

__version__ = "0.1.0"
