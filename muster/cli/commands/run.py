"""The command run."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from muster.cli.commands.submit import Wish, make, overrides_of
from muster.cli.context import CliContext, answers, session_of
from muster.cli.file_hint import MISSING_FILE_CODES, forgotten_files
from muster.cli.options import DryRun, Output, QueueAnyway, labels_of
from muster.cli.output.documents import Format
from muster.cli.output.screen import print_dim
from muster.cli.run_document import RunFlags, job_name, run_document
from muster.cli.streams import has_unread_input
from muster.domain.errors import InvalidJobError
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.job import JobSpec, Network, Packing, PullPolicy
from muster.domain.jobs.job_class import JobClass
from muster.jobfile import job_from, refused_in_values


@answers
async def run(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[--] COMMAND...", help="Program and arguments to run.")
    ] = None,
    *,
    workers: Annotated[int, typer.Option("--workers", "-N", min=1, help="Number of executions.")] = 1,
    gpus: Annotated[int | None, typer.Option(help="GPUs for each execution (default: 0).")] = None,
    gpu_model: Annotated[
        str | None, typer.Option(help="Text that the model name of every GPU contains: `H100`.")
    ] = None,
    mig: Annotated[
        str | None,
        typer.Option(metavar="PROFILE", help="MIG devices in place of whole GPUs: `1g.10gb`; `--gpus` says how many."),
    ] = None,
    gpu_portion: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Part of each GPU in place of the whole: `0.5`.")
    ] = None,
    gpu_memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of each GPU in place of the whole GPU: `20Gi`.")
    ] = None,
    cpus: Annotated[str | None, typer.Option(help="CPUs for each execution: `2`, `0.5` (default: 1).")] = None,
    memory: Annotated[
        str | None, typer.Option(help="Memory for each execution: `16Gi` (default: nothing is reserved).")
    ] = None,
    shm: Annotated[
        str | None, typer.Option(help="Size of /dev/shm in the container: `8Gi` (default: the runtime's).")
    ] = None,
    image: Annotated[str | None, typer.Option(help="Container image (default: none, a plain process runs).")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the job (default: made from the command).")] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            "-e",
            metavar="NAME[=VALUE]",
            help="Environment variable; without VALUE it has the value that it has here. May be repeated.",
        ),
    ] = None,
    port: Annotated[
        list[str] | None,
        typer.Option(
            "--port",
            "-p",
            metavar="NAME[=NUMBER]",
            help="Port of each execution: NUMBER, or one that is leased. May be repeated.",
        ),
    ] = None,
    mount: Annotated[
        list[str] | None,
        typer.Option(
            metavar="/SOURCE:/TARGET[:rw]",
            help="Directory or file of the node, seen at TARGET in the container; may be repeated.",
        ),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[VARIABLE=]NAME[:KEY]",
            help="Secret of the project, as files in /muster/secrets/NAME or in a variable; may be repeated.",
        ),
    ] = None,
    input_: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=URL|JOB",
            help="A file, or outputs of a job, found in /muster/inputs/NAME; may be repeated.",
        ),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE[:PATH]",
            help="Small file from here that each execution gets, at PATH in its working directory; may be repeated.",
        ),
    ] = None,
    code: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of which each execution gets a copy, as its working directory."),
    ] = None,
    git: Annotated[
        str | None,
        typer.Option(metavar="URL[@REF]", help="Git repository whose branch, tag or commit REF is the code."),
    ] = None,
    ref: Annotated[
        str | None,
        typer.Option(help="Branch, tag or commit of `--git`, as after its `@` (default: the HEAD of the repository)."),
    ] = None,
    git_path: Annotated[
        str | None,
        typer.Option(metavar="DIRECTORY", help="Directory of `--git` that is the code (default: all of it)."),
    ] = None,
    git_secret: Annotated[
        str | None, typer.Option(metavar="NAME", help="Secret of the project that opens `--git` (default: none).")
    ] = None,
    git_submodules: Annotated[
        bool, typer.Option("--git-submodules", help="Have the submodules of `--git` come along.")
    ] = False,
    git_lfs: Annotated[
        bool, typer.Option("--git-lfs", help="Have the large files (Git LFS) of `--git` come along.")
    ] = False,
    env_file: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="File with an environment variable, NAME=VALUE, on each line; may be repeated."
        ),
    ] = None,
    pull: Annotated[PullPolicy | None, typer.Option(help="When the image is pulled (default: missing).")] = None,
    entrypoint: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Program that runs in place of the image's entrypoint.")
    ] = None,
    ulimit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SOFT[:HARD]", help="Limit of the container: `nofile=65536`; may be repeated."),
    ] = None,
    workdir: Annotated[str | None, typer.Option(help="Working directory of the program.")] = None,
    user: Annotated[str | None, typer.Option(help="User and group in the container, by number: `1000:1000`.")] = None,
    network: Annotated[
        Network | None,
        typer.Option(
            help="`host`: the network of the node; `bridge`: a private one for each container (default: host)."
        ),
    ] = None,
    placement: Annotated[
        Packing | None, typer.Option(help="`pack`: on as few nodes as possible; `spread`: on as many (default: pack).")
    ] = None,
    max_per_node: Annotated[int | None, typer.Option(help="Most executions on one node (default: no limit).")] = None,
    node_label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Label that nodes must have: `pool=h100`; may be repeated."),
    ] = None,
    priority: Annotated[
        int | None, typer.Option(help="Place in the queue, -1000 to 1000; higher goes first (default: 0).")
    ] = None,
    job_class: Annotated[
        JobClass | None,
        typer.Option(
            "--class",
            help="`guaranteed`: within the quota alone; `preemptible`: also beyond it; `spare`: what nobody else wants "
            "(default: as the project says).",
        ),
    ] = None,
    project: Annotated[str | None, typer.Option(help="The project of the job (default: your only project).")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A label to find the job by: `paper=icml`; may be repeated."),
    ] = None,
    framework: Annotated[
        str | None,
        typer.Option(help="What the program is written for: `pytorch`, `jax`, … (default: nothing in particular)."),
    ] = None,
    dialect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SYSTEM",
            help="Another system whose variables the program looks for: `slurm`, `valohai`, …; may be repeated.",
        ),
    ] = None,
    success: Annotated[
        str | None,
        typer.Option(metavar="WHO", help="Which ranks must succeed: `all`, or `rank0` (default: all)."),
    ] = None,
    time_limit: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Longest time that the program may run: `12h` (default: no limit)."),
    ] = None,
    grace: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time between SIGTERM and SIGKILL at a stop (default: 10s).")
    ] = None,
    restarts: Annotated[
        int | None,
        typer.Option(metavar="COUNT", help="Restarts of the gang after failures of the program (default: 0)."),
    ] = None,
    infrastructure_restarts: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT", help="Restarts of the gang after other failures, such as lost nodes (default: 10)."
        ),
    ] = None,
    backoff: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Pause before the second restart, doubled before each later one (default: 5s)."
        ),
    ] = None,
    check_in_timeout: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Longest time to prepare the executions (default: 10m)."),
    ] = None,
    lost_after: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Silence of a node after which its executions count as lost (default: 90s)."),
    ] = None,
    on_disconnect: Annotated[
        OnDisconnect | None,
        typer.Option(help="What executions do on a node that is cut off: `keep` running, or `stop` (default: keep)."),
    ] = None,
    has_input: Annotated[
        bool, typer.Option("--stdin", "-i", help="Pass on what comes on stdin, to rank 0 of several workers.")
    ] = False,
    terminal: Annotated[
        bool, typer.Option("--tty", "-t", help="Give the command your terminal; of several workers, rank 0.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Submit the job and print its id, without staying with it.")
    ] = False,
    dry_run: DryRun = False,
    queue_anyway: QueueAnyway = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Any other key of a job file: `resources.gpus=2`; may be repeated."
        ),
    ] = None,
    output: Output = Format.TABLE,
) -> int:
    """Run a command on every worker and stay with the job.

    The first Ctrl-C stops the job, the second leaves at once. Options stand before the command. The exit code is that
    of the program that failed first.

    Examples:
      muster run -N 3 -- hostname
      muster run --file train.py --gpus 8 --time-limit 12h -- python3 train.py --lr 0.1
    """
    attached = has_input or terminal
    alone = attached and workers == 1
    if attached:
        _refuse_unattended(stays=not detach and output.for_people)
    if has_unread_input() and not attached:
        raise InvalidJobError(
            "data waits on stdin, which does not reach a job: send it as a file of a job file (`files`), or write "
            "`< /dev/null` behind the command if it is not for the job"
        )
    flags = RunFlags(
        command=() if alone else command or (),
        workers=workers,
        name=name or (job_name(command, image) if alone and command else None),
        image=image,
        workdir=workdir,
        user=user,
        env=env or (),
        ports=port or (),
        mounts=mount or (),
        secrets=secret or (),
        inputs=input_ or (),
        gpus=gpus,
        gpu_model=gpu_model,
        mig=mig,
        gpu_portion=gpu_portion,
        gpu_memory=gpu_memory,
        cpus=cpus,
        memory=memory,
        shm=shm,
        network=network,
        placement=placement,
        priority=priority,
        job_class=job_class,
        project=project,
        labels=labels_of(label, "--label") if label else None,
        framework=framework,
        dialects=dialect or (),
        success=success,
        max_per_node=max_per_node,
        check_in_timeout=check_in_timeout,
        lost_after=lost_after,
        on_disconnect=on_disconnect,
        files=file or (),
        code=code,
        git=git,
        ref=ref,
        git_path=git_path,
        git_secret=git_secret,
        git_submodules=git_submodules,
        git_lfs=git_lfs,
        env_files=env_file or (),
        pull=pull,
        entrypoint=entrypoint,
        ulimits=ulimit or (),
        node_labels=node_label or (),
        time_limit=time_limit,
        grace=grace,
        restarts=restarts,
        infrastructure_restarts=infrastructure_restarts,
        backoff=backoff,
    )
    document, overrides = run_document(flags, os.environ), overrides_of(settings or ())
    if attached:
        document |= {"interactive": True} if alone else {"stdin": True, "tty": terminal}
    spec = job_from(document, "muster run", base=Path(), overrides=overrides)
    wish = Wish(follow=not detach, stops=True, dry_run=dry_run, queue_anyway=queue_anyway, output=output)
    try:
        if attached and not dry_run:
            return await _run_attached(session_of(context), spec, wish, command or (), alone=alone, terminal=terminal)
        ended = await make(session_of(context), spec, wish)
    except InvalidJobError as error:
        located = refused_in_values(str(error), "muster run", document, base=Path(), overrides=overrides)
        raise located or error from None
    if has_unread_input() and not attached:
        print_dim("warning: what has come on stdin since the start did not reach the job")
    if ended in MISSING_FILE_CODES:
        for word in forgotten_files(spec, [Path()]):
            print_dim(f"hint: the file {word} is here, and no execution got it; `--file {word}` sends it along")
    return ended


def _refuse_unattended(*, stays: bool) -> None:
    """Refuse to give a job that nobody stays with an input or a terminal."""
    if not stays:
        raise InvalidJobError("-i and -t are for a job that you stay with; leave out --detach and --output")


async def _run_attached(
    session: CliContext, spec: JobSpec, wish: Wish, command: Sequence[str], *, alone: bool, terminal: bool
) -> int:
    """Run the command with what comes on stdin, or with this terminal; `alone`: there is one worker, and the command
    ends its job.
    """
    if alone:
        from muster.cli.commands.inside.own_job import run_in_own_job

        return await run_in_own_job(session, spec, command, wish, terminal=terminal)
    from muster.cli.commands.inside.attach import run_with_main_program

    return await run_with_main_program(session, spec, wish)
