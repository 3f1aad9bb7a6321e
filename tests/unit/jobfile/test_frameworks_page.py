"""docs/frameworks.md: every job file on the page is right, and each is run by a test of the real framework."""

from muster.domain.jobs.frameworks.framework import FrameworkName
from tests.frameworks.recipes import recipes

WITHOUT_JOB_FILE = {FrameworkName.XGBOOST, FrameworkName.LIGHTGBM}
"""Frameworks whose recipe is a program, which tests/frameworks/programs has as well."""


def test_there_is_a_job_file_for_every_framework() -> None:
    told = {spec.framework.name for jobs in recipes().values() for spec in jobs if spec.framework is not None}
    assert told == set(FrameworkName) - WITHOUT_JOB_FILE


def test_every_section_has_as_many_job_files_as_tests_run() -> None:
    """tests/frameworks and tests/large_frameworks run these; one more needs a test there, too."""
    assert {heading: len(jobs) for heading, jobs in recipes().items() if jobs} == {
        "Frameworks": 1,
        "PyTorch": 1,
        "TensorFlow": 1,
        "JAX": 1,
        "Ray": 1,
        "MPI": 1,
        "Horovod": 1,
        "DeepSpeed": 2,
    }
