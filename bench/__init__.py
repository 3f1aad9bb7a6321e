"""Benchmarks of Muster beside its peers; `python -m bench --help`."""
