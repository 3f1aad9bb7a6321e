"""What `muster run` makes of its flags."""

from pathlib import Path

import pytest
import typer

from muster.cli.run_document import RunFlags, job_name, run_document
from muster.domain.jobs.placing.portion import Portion
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
        job_class="spare",
        dialects=("slurm", "valohai"),
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
        "dialects": ["slurm", "valohai"],
        "class": "spare",
        "max_per_node": 2,
        "timeouts": {"check_in": "5m", "lost_after": "1h"},
        "on_disconnect": "stop",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("https://git.example.org/team/train.git", {"git": "https://git.example.org/team/train.git"}),
        ("https://h/train.git@main", {"git": "https://h/train.git", "ref": "main"}),
        ("https://h/train.git@feature/x", {"git": "https://h/train.git", "ref": "feature/x"}),
        ("ssh://git@h:22/train.git", {"git": "ssh://git@h:22/train.git"}),
        ("ssh://git@h/train.git@v1", {"git": "ssh://git@h/train.git", "ref": "v1"}),
        ("https://h/@scope/train", {"git": "https://h/@scope/train"}),
        ("https://h/@scope/train@v1", {"git": "https://h/@scope/train", "ref": "v1"}),
    ],
)
def test_a_repository_may_be_followed_by_what_is_wanted_of_it(text: str, said: dict[str, str]) -> None:
    assert run_document(RunFlags(command=("a",), git=text), {})["code"] == said


def test_what_is_wanted_of_a_repository_has_options_of_its_own() -> None:
    flags = RunFlags(command=("a",), git="https://h/train.git")
    whole = flags._replace(ref="main", git_path="trainer", git_secret="gitlab", git_submodules=True, git_lfs=True)
    code = {"git": "https://h/train.git", "ref": "main", "path": "trainer", "secret": "gitlab"}
    assert run_document(whole, {})["code"] == code | {"submodules": True, "lfs": True}
    assert job_from(run_document(whole, {}), "muster run").roles[0].code is not None
    with pytest.raises(typer.BadParameter, match="is main, and --git ends with @v1; say it in one of them"):
        run_document(whole._replace(git="https://h/train.git@v1"), {})


@pytest.mark.parametrize(
    ("flags", "option"),
    [
        (RunFlags(ref="main"), "--ref"),
        (RunFlags(git_path="a"), "--git-path"),
        (RunFlags(git_secret="a"), "--git-secret"),
        (RunFlags(git_submodules=True), "--git-submodules"),
        (RunFlags(git_lfs=True), "--git-lfs"),
    ],
)
def test_what_is_said_of_a_repository_needs_one(flags: RunFlags, option: str) -> None:
    with pytest.raises(typer.BadParameter, match="says something of a repository; name that with --git") as no:
        run_document(flags._replace(command=("a",), code=Path()), {})
    assert no.value.param_hint == option


def test_an_input_that_is_named_again_has_another_url() -> None:
    texts = ("a=https://h/1", "b=train/worker-0", "a=https://h/2", "a=s3://acme/x/")
    inputs = run_document(RunFlags(command=("a",), inputs=texts), {})["inputs"]
    assert inputs == {"a": ["https://h/1", "https://h/2", "s3://acme/x/"], "b": {"from": "train/worker-0"}}
    with pytest.raises(typer.BadParameter, match="has the input b twice; an input has one job, or URLs alone"):
        run_document(RunFlags(command=("a",), inputs=("b=train", "b=https://h/1")), {})


def test_code_comes_from_a_folder_or_a_repository() -> None:
    with pytest.raises(typer.BadParameter, match="beside --code"):
        run_document(RunFlags(command=("a",), code=Path(), git="https://h/train.git"), {})


def test_what_a_job_file_can_say_the_command_line_can_too(tmp_path: Path) -> None:
    variables = tmp_path / "vars.env"
    variables.write_text("# ours\nA=1\n\nexport B=two words\nHERE\n")
    flags = RunFlags(
        command=("a",),
        env=("A=2",),
        env_files=(variables,),
        files=("train.py", "conf/a.json:b.json"),
        image="i",
        pull="never",
        entrypoint="sh -c",
        ulimits=("nofile=1024:4096", "core=unlimited"),
        node_labels=("pool=h100",),
        time_limit="12h",
        grace="30s",
        restarts=3,
        infrastructure_restarts=0,
        backoff="1m",
    )

    document = run_document(flags, {"HERE": "x"})

    assert document == {
        "name": "a",
        "workers": 1,
        "image": "i",
        "command": ["a"],
        "env": {"A": "2", "B": "two words", "HERE": "x"},
        "files": [{"path": "train.py", "source": "train.py"}, {"path": "b.json", "source": "conf/a.json"}],
        "pull": "never",
        "entrypoint": ["sh", "-c"],
        "ulimits": {"nofile": {"soft": 1024, "hard": 4096}, "core": "unlimited"},
        "node_labels": {"pool": "h100"},
        "timeouts": {"run": "12h", "grace": "30s"},
        "restarts": {"limit": 3, "infrastructure": 0, "backoff": "1m"},
    }


def test_a_profile_asks_for_one_mig_device_unless_it_is_said_how_many() -> None:
    one = job_from(run_document(RunFlags(command=("a",), mig="1g.10gb"), {}), "muster run")
    two = job_from(run_document(RunFlags(command=("a",), mig="3g.40gb", gpus=2), {}), "muster run")

    assert [(job.roles[0].resources.mig, job.roles[0].resources.gpus) for job in (one, two)] == [
        ("1g.10gb", 1),
        ("3g.40gb", 2),
    ]


def test_a_portion_is_of_one_gpu_unless_it_is_said_of_how_many() -> None:
    one = job_from(run_document(RunFlags(command=("a",), gpu_portion="0.5"), {}), "muster run")
    two = job_from(run_document(RunFlags(command=("a",), gpu_memory="20Gi", gpus=2), {}), "muster run")

    assert [job.roles[0].resources.portion for job in (one, two)] == [Portion(500), Portion(1000, 20 * 2**30)]
    assert [job.roles[0].resources.gpus for job in (one, two)] == [1, 2]


def test_any_other_key_is_set_by_its_name() -> None:
    document = run_document(RunFlags(command=("a",), image="i"), {})

    spec = job_from(document, "muster run", overrides={"image": "null", "resources.gpus": "2", "security.pids": "null"})

    assert (spec.roles[0].image, spec.roles[0].resources.gpus) == (None, 2)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (RunFlags(node_labels=("pool",)), "write NAME=VALUE, not 'pool'"),
        (RunFlags(ulimits=("nofile",)), "write NAME=VALUE, not 'nofile'"),
        (RunFlags(env_files=(Path("/nowhere/x.env"),)), "cannot read /nowhere/x.env: No such file or directory"),
    ],
)
def test_what_is_said_in_a_wrong_way_is_refused_with_the_right_one(flags: RunFlags, message: str) -> None:
    with pytest.raises(typer.BadParameter, match=message):
        run_document(flags, {})


def test_a_bare_variable_that_is_not_set_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="HOME2 is not set here; write HOME2=value"):
        run_document(RunFlags(command=("a",), env=("HOME2",)), {})


@pytest.mark.parametrize(
    ("command", "image", "name"),
    [
        (("python", "-u", "src/Train_Model.py", "--data", "x.csv"), None, "train-model"),
        (("torchrun", "--nnodes", "4"), None, "torchrun"),
        (("/bin/sh", "-c", "echo 0.2; sleep 1"), None, "echo"),
        (("bash", "-c", "for i in 1 2; do date; done"), None, "run"),
        (("sh", "-c", "A=1 ./train.sh"), None, "run"),
        (("sh", "-c", ""), "trainer:1", "trainer"),
        (("python3", "-c", "import torch; print(torch)"), None, "python3"),
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
