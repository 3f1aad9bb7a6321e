"""The program in front of user code, as Docker is asked for it, and what it notes."""

from typing import cast

import pytest

from agent.core.containers.first import NO_NOTE, behind_first, noted_exit_code, without_first
from agent.core.containers.secrets import is_behind_variables, with_variables
from agent.core.containers.spec import Body

BODY: Body = {"Image": "sha256:abc", "Entrypoint": ["python"], "Cmd": ["train.py"], "HostConfig": {"Mounts": []}}


def test_user_code_is_behind_the_program_with_all_its_words() -> None:
    made = behind_first(BODY, ("python", "-u", "train.py"), ("/opt/bin/python", "/bin/python"))
    assert made == {
        **BODY,
        "Entrypoint": ["/muster/first/muster-first"],
        "Cmd": ["/muster/first/exit", "2", "/opt/bin/python", "/bin/python", "python", "-u", "train.py"],
    }


def test_user_code_with_secret_variables_has_their_program_in_between() -> None:
    paths = ("/opt/bin/python", "/bin/python")
    made = behind_first(with_variables(BODY, "env", ("python", "train.py"), paths), ("python", "train.py"), paths)
    program = "/muster-secret-env"
    assert made["Entrypoint"] == ["/muster/first/muster-first"]
    assert made["Cmd"] == [
        *("/muster/first/exit", "1", program, program),
        *("/muster/secret-env/env", "2", "/opt/bin/python", "/bin/python", "python", "train.py"),
    ]


@pytest.mark.parametrize("noting", [False, True])
@pytest.mark.parametrize("secret", [False, True])
def test_whether_user_code_has_secret_variables_is_told_by_the_command(noting: bool, secret: bool) -> None:
    words, paths = ("python", "train.py"), ("/bin/python",)
    made = with_variables(BODY, "env", words, paths) if secret else BODY
    made = behind_first(made, words, paths) if noting else made
    command = [*cast("list[str]", made["Entrypoint"]), *cast("list[str]", made["Cmd"])]
    assert is_behind_variables(without_first(command)) is secret


@pytest.mark.parametrize(
    ("note", "code"),
    [
        (b"0  \n", 0),
        (b"7  \n", 7),
        (b"137\n", 137),
        (b"255\n", 255),
        (NO_NOTE, None),
        (b"", None),
        (b"256\n", None),
        (b"-1 \n", None),
        (b"1 2\n", None),
        ("²  ".encode(), None),
        (b"\xff\xfe\x00", None),
    ],
)
def test_a_note_is_an_exit_code_or_none(note: bytes, code: int | None) -> None:
    assert noted_exit_code(note) == code
