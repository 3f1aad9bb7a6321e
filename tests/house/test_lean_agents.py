"""An agent that has nothing to do has loaded nothing that it can do without; docs/performance.md tells its memory."""

import subprocess
import sys

from tests.house.generate_stubs import ROOT

DISPENSABLE = (
    "_hashlib",
    "_ssl",
    "bz2",
    "cryptography",
    "http.client",
    "muster.rpc.v1.jobs_pb2",
    "psutil",
    "pydantic",
    "yaml",
)
"""OpenSSL alone is 4 MB. Each of these is loaded by whoever needs it, then."""


def test_an_agent_starts_without_what_only_some_of_its_work_needs() -> None:
    program = (
        "import agent.__main__, agent.main, sys; from muster import wire; "
        "wire.PlanReader, wire.report_to_wire, wire.inventory_to_wire, wire.delivered_from_wire; "
        f"print(*[each for each in {DISPENSABLE} if sys.modules.get(each)])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "\n", "")


def test_what_is_left_out_of_typing_comes_when_it_is_asked_for() -> None:
    program = (
        "import sys, agent.__main__, grpc.aio; print('__file__' in vars(sys.modules['typing_extensions'])); "
        "from typing_extensions import Self, deprecated; import typing, typing_extensions; "
        "print(Self is typing.Self, typing_extensions.deprecated is deprecated)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "False\nTrue True\n", "")


def test_the_values_of_an_agent_share_their_methods() -> None:
    program = (
        "import agent.__main__, agent.main, dataclasses, gc; "
        "values = [each for each in gc.get_objects() if isinstance(each, type) and dataclasses.is_dataclass(each)"
        " and each.__module__.startswith(('agent.', 'muster.')) and '__slots__' in vars(each)"
        " and each.__dataclass_params__.frozen and not each.__dataclass_params__.order]; "
        "own = [each.__setattr__.__code__ for each in values]; "
        "print(len(own) > 200, len(set(own)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True 1\n", "")
