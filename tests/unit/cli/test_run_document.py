"""What `muster run` makes of its flags."""

import pytest
import typer

from muster.cli.run_document import RunFlags, job_name, run_document
from muster.jobfile import job_from


def test_only_what_was_said_is_in_the_document() -> None:
    assert run_document(RunFlags(command=("python", "train.py")), {}) == {
        "name": "train",
        "workers": 1,
        "command": ["python", "train.py"],
    }


def test_every_flag_becomes_a_key_of_a_job_file() -> None:
    flags = RunFlags(
        command=("a",),
        workers=4,
        name="n",
        image="i:1",
        env=("A=1=2", "HERE"),
        ports=("ring", "http=8080"),
        mounts=("/a:/b",),
        gpus=0,
        memory="1Gi",
        check_in_timeout="5m",
        lost_after="1h",
        on_disconnect="stop",
        max_per_node=2,
    )

    assert run_document(flags, {"HERE": "x"}) == {
        "name": "n",
        "workers": 4,
        "image": "i:1",
        "command": ["a"],
        "env": {"A": "1=2", "HERE": "x"},
        "ports": ["ring", {"name": "http", "port": 8080}],
        "mounts": ["/a:/b"],
        "resources": {"gpus": 0, "memory": "1Gi"},
        "max_per_node": 2,
        "timeouts": {"check_in": "5m", "lost_after": "1h"},
        "on_disconnect": "stop",
    }


def test_a_bare_variable_that_is_not_set_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="HOME2 is not set here; write HOME2=value"):
        run_document(RunFlags(command=("a",), env=("HOME2",)), {})


@pytest.mark.parametrize(
    ("command", "image", "name"),
    [
        (("python", "-u", "src/Train_Model.py", "--data", "x.csv"), None, "train-model"),
        (("torchrun", "--nnodes", "4"), None, "torchrun"),
        (("/bin/sh", "-c", "echo 0.2; sleep 1"), None, "echo"),
        (("./run.sh",), None, "run"),
        (("python3.11", "-m", "http"), None, "python3"),
        ((), "registry:5000/team/trainer:1.2", "trainer"),
        (("日本",), None, "run"),
    ],
)
def test_a_job_without_a_name_is_called_after_what_it_runs(
    command: tuple[str, ...],
    image: str | None,
    name: str,
) -> None:
    assert job_name(command, image) == name


def test_secrets_are_files_or_variables() -> None:
    said = ("wandb", "TOKEN=gh", "DB_USER=db:user", "DB_PASSWORD=db:password", "db")
    assert run_document(RunFlags(command=("a",), secrets=said), {})["secrets"] == [
        {"secret": "wandb", "directory": "/muster/secrets/wandb"},
        {"secret": "gh", "env": {"TOKEN": ""}},
        {
            "secret": "db",
            "env": {"DB_USER": "user", "DB_PASSWORD": "password"},
            "directory": "/muster/secrets/db",
        },
    ]


def test_a_key_of_a_secret_without_a_variable_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="write VARIABLE=db:user, or db for files with all keys"):
        run_document(RunFlags(command=("a",), secrets=("db:user",)), {})


def test_a_fixed_port_makes_a_job_that_is_accepted() -> None:
    spec = job_from(run_document(RunFlags(command=("a",), ports=("http=8080",)), {}), "muster run")

    assert [(port.name, port.port) for port in spec.roles[0].ports] == [("http", 8080)]


@pytest.mark.parametrize("number", ["", "web", "-1", "8080.0", "٣"])
def test_a_port_that_is_no_number_is_refused(number: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a port number; write http=8080, or http to lease"):
        run_document(RunFlags(command=("a",), ports=(f"http={number}",)), {})
