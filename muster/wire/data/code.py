"""Code of jobs on the wire."""

import re

from muster.domain.data.code import GIT_COMMIT, GitCode, JobCode
from muster.domain.data.digest import is_digest
from muster.domain.data.upload import CodePass, DepotPass
from muster.rpc.v1 import agents_pb2, model_pb2
from muster.wire.checks import WireError


def code_to_wire(code: JobCode) -> model_pb2.Code:
    """What each execution of a role gets a copy of."""
    git = code.git
    return model_pb2.Code(
        tree=code.tree,
        size=code.size,
        git=None
        if git is None
        else model_pb2.GitCode(
            url=git.url,
            ref=git.ref,
            commit=git.commit,
            path=git.path,
            secret=git.secret,
            submodules=git.submodules,
            lfs=git.lfs,
        ),
        read_only=not code.writable,
    )


def code_from_wire(message: model_pb2.Code) -> JobCode:
    """What each execution of a role gets a copy of; the rules of jobs look at what it says."""
    git = message.git
    return JobCode(
        tree=message.tree,
        size=message.size,
        git=GitCode(
            url=git.url,
            ref=git.ref,
            commit=git.commit,
            path=git.path,
            secret=git.secret,
            submodules=git.submodules,
            lfs=git.lfs,
        )
        if message.HasField("git")
        else None,
        writable=not message.read_only,
    )


def fetched_code_from_wire(message: model_pb2.Code) -> JobCode:
    """What a node has fetched from a repository; raises WireError."""
    if not is_digest(message.tree):
        raise WireError("Code.tree", "is no SHA-256")
    if re.fullmatch(GIT_COMMIT, message.git.commit) is None:
        raise WireError("Code.git.commit", "is no commit")
    return code_from_wire(message)


def code_pass_to_wire(shown: CodePass) -> agents_pb2.DataResponse:
    """The way to the code of an execution."""
    depot = shown.depot
    return agents_pb2.DataResponse(
        depot="" if depot is None else depot.depot,
        ticket="" if depot is None else depot.ticket,
        allowed=0 if depot is None else depot.allowed,
        code=code_to_wire(shown.code),
    )


def code_pass_from_wire(message: agents_pb2.DataResponse) -> CodePass:
    """The way to the code of an execution."""
    depot = DepotPass(depot=message.depot, ticket=message.ticket, allowed=message.allowed) if message.ticket else None
    return CodePass(code=code_from_wire(message.code), depot=depot)
