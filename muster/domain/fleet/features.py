"""Words by which an agent says what it can, so that jobs that need something go only to nodes that have it.

There is one version of the protocol; what has come since the first agents is told by a word.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from muster.domain.data.code import JobCode
from muster.domain.data.job_input import AZURE_SCHEME, JobInput
from muster.domain.data.output_terms import OutputTerms
from muster.domain.data.pattern import InputLayout
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.placeholders import placeholder_names

SECRETS = "secrets"
"""The agent hands secrets of the project to its executions."""

GANG_COMMANDS = "gang-commands"
"""The agent lets user code run commands in the other executions of its attempt."""

ATTACH = "attach"
"""The agent lets people and programs attach to running executions; one with `--no-attach` does not say it."""

INTERACTIVE = "interactive"
"""The agent runs interactive jobs, and tells when executions are used."""

MAIN_PROGRAM = "main-program"
"""The agent gives main programs an input or a terminal; one that lets nobody attach does not say it."""

CODE = "code"
"""The agent gives executions the code that their job brings along."""

GIT_CODE = "git-code"
"""The agent fetches code from Git repositories; one on a node without git does not say it."""

GIT_SUBMODULES = "git-submodules"
"""The agent fetches the submodules of code from Git repositories; one on a node without git does not say it."""

GIT_LFS = "git-lfs"
"""The agent fetches large files of code from Git repositories; one on a node without git does not say it."""

SHARED_CODE = "shared-code"
"""The agent has executions share one directory of code that nobody may write to."""

VOLUMES = "volumes"
"""The agent gives executions volumes."""

KEPT_VOLUMES = "kept-volumes"
"""The agent keeps volumes for the jobs of a project, tells of them, and removes one where it is told to."""

INPUTS = "inputs"
"""The agent gives executions the inputs of their job."""

INPUT_TREES = "input-trees"
"""The agent gives executions outputs of other jobs as inputs."""

BUCKETS = "buckets"
"""The agent gives executions objects of stores as inputs."""

INPUT_SECRETS = "input-secrets"
"""The agent shows servers of files the secrets that are for them."""

INPUT_PARTS = "input-parts"
"""The agent gives each execution its part of an input, and lays out objects as their job wants it."""

INPUT_LISTS = "input-lists"
"""The agent puts what several URLs hold into one input."""

INPUT_PLACEHOLDERS = "input-placeholders"
"""The agent puts values of an execution into URLs of its inputs."""

AZURE_STORES = "azure-stores"
"""The agent reads and writes objects of Azure."""

BUCKET_OUTPUTS = "bucket-outputs"
"""The agent stores outputs in stores of objects."""

OUTPUT_TERMS = "output-terms"
"""The agent stores those outputs that their job wants to have stored."""

LIVE_OUTPUTS = "live-outputs"
"""The agent stores outputs while user code runs, where their job wants that."""

GPU_PORTIONS = "gpu-portions"
"""The agent tells executions how much of their GPUs they have."""

STORED_CHECKPOINTS = "checkpoints"
"""The agent stores checkpoints of its executions, and has them find those of attempts before."""

CHECKPOINT_STORES = "checkpoint-stores"
"""The agent stores checkpoints in stores of objects, and restores them from there."""

STORE_AGAIN = "store-again"
"""The agent stores outputs again of executions that are over, where it is told to."""

ONE_IMAGE = "one-image"
"""The agent finds out for its job which image a name means, and runs the one that was found."""

CLEAR_IMAGES = "clear-images"
"""The agent tells which images it has pulled, and takes some away where it is told to."""

PULL_IMAGES = "pull-images"
"""The agent pulls images before jobs need them, where it is told to."""

SWARM = "swarm"
"""The agent gives pieces of code and inputs to the other nodes of an attempt; one with `--no-peers` does not say it."""

ALL_FEATURES = frozenset(
    {
        SECRETS,
        GANG_COMMANDS,
        ATTACH,
        INTERACTIVE,
        MAIN_PROGRAM,
        CODE,
        GIT_CODE,
        GIT_SUBMODULES,
        GIT_LFS,
        SHARED_CODE,
        VOLUMES,
        KEPT_VOLUMES,
        INPUTS,
        INPUT_TREES,
        BUCKETS,
        INPUT_PARTS,
        INPUT_SECRETS,
        INPUT_LISTS,
        INPUT_PLACEHOLDERS,
        AZURE_STORES,
        BUCKET_OUTPUTS,
        OUTPUT_TERMS,
        LIVE_OUTPUTS,
        GPU_PORTIONS,
        STORED_CHECKPOINTS,
        CHECKPOINT_STORES,
        STORE_AGAIN,
        ONE_IMAGE,
        CLEAR_IMAGES,
        PULL_IMAGES,
        SWARM,
    }
)
"""Features of the agent of this version."""

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        SECRETS: "secrets of the project",
        GANG_COMMANDS: "commands in other executions",
        ATTACH: "attaching to running executions",
        INTERACTIVE: "interactive jobs and limits for jobs that nobody uses",
        MAIN_PROGRAM: "main programs with an input or a terminal",
        CODE: "code that jobs bring along",
        GIT_CODE: "code from Git repositories, for which the node must have git",
        GIT_SUBMODULES: "submodules of Git repositories",
        GIT_LFS: "large files of Git repositories",
        SHARED_CODE: "code that executions share",
        VOLUMES: "volumes",
        KEPT_VOLUMES: "volumes that stay on the node",
        INPUTS: "inputs",
        INPUT_TREES: "outputs of other jobs as inputs",
        BUCKETS: "objects of stores as inputs",
        INPUT_PARTS: "parts and layouts of inputs",
        INPUT_SECRETS: "secrets for servers of inputs",
        INPUT_LISTS: "inputs with several URLs",
        INPUT_PLACEHOLDERS: "placeholders in URLs of inputs",
        AZURE_STORES: "objects of Azure",
        BUCKET_OUTPUTS: "outputs in stores of objects",
        OUTPUT_TERMS: "what jobs say of their outputs",
        LIVE_OUTPUTS: "outputs that are stored while user code runs",
        GPU_PORTIONS: "portions of GPUs",
        STORED_CHECKPOINTS: "checkpoints",
        CHECKPOINT_STORES: "checkpoints in stores of objects",
        STORE_AGAIN: "storing outputs again",
        ONE_IMAGE: "one image for all ranks of a job",
        CLEAR_IMAGES: "listing and clearing images",
        PULL_IMAGES: "pulling images on an order",
        SWARM: "code and inputs from other nodes",
    }
)
"""The words as a person reads them in `muster why`."""


def needed(spec: JobSpec, role: Role) -> frozenset[str]:
    """The features that a node must have for this role of a job."""
    words = [*_of_job(spec, role), *_of_outputs(role.outputs)]
    if role.code is not None:
        words += _of_code(role.code)
    if role.volumes:
        words += (VOLUMES, *([KEPT_VOLUMES] if any(each.is_kept for each in role.volumes) else []))
    if role.inputs:
        words += _of_inputs(role.inputs)
    return _alike(*words)


@cache  # one and the same set for all roles that are alike; there are few of them
def _alike(*words: str) -> frozenset[str]:
    return frozenset(words)


def _of_job(spec: JobSpec, role: Role) -> Iterator[str]:
    if role.secrets:
        yield SECRETS
    if spec.gang_commands:
        yield GANG_COMMANDS
    if spec.interactive is not None or spec.idle_limit is not None:
        yield INTERACTIVE
    if spec.main_program is not None and role.name == spec.roles[0].name:
        yield MAIN_PROGRAM
    if role.resources.portion is not None:
        yield GPU_PORTIONS
    if role.checkpoint is not None:
        yield STORED_CHECKPOINTS
        if role.checkpoint.to:
            yield CHECKPOINT_STORES
        if role.checkpoint.to.startswith(AZURE_SCHEME):
            yield AZURE_STORES


def _of_code(code: JobCode) -> Iterator[str]:
    yield CODE
    if not code.writable:
        yield SHARED_CODE
    if code.git is not None and code.is_awaited:
        yield GIT_CODE
        if code.git.submodules:
            yield GIT_SUBMODULES
        if code.git.lfs:
            yield GIT_LFS


def _of_inputs(inputs: Sequence[JobInput]) -> Iterator[str]:
    yield INPUTS
    files = tuple(one for each in inputs for one in each.singly)
    wanted = {
        INPUT_TREES: any(each.source for each in inputs),
        INPUT_LISTS: any(each.urls for each in inputs),
        BUCKETS: any(each.is_in_bucket for each in files),
        INPUT_PARTS: any(each.split or each.layout is not InputLayout.TAIL for each in inputs),
        INPUT_SECRETS: any(each.secret and not each.is_in_bucket for each in files),
        INPUT_PLACEHOLDERS: any(True for each in files for _ in placeholder_names(each.url)),
        AZURE_STORES: any(each.url.startswith(AZURE_SCHEME) for each in files),
    }
    yield from (word for word, is_needed in wanted.items() if is_needed)


def _of_outputs(outputs: OutputTerms) -> Iterator[str]:
    if outputs.to:
        yield BUCKET_OUTPUTS
        if outputs.to.startswith(AZURE_SCHEME):
            yield AZURE_STORES
    if outputs.bind_nodes:
        yield OUTPUT_TERMS
    if outputs.are_live:
        yield LIVE_OUTPUTS
