"""Outputs of executions on the wire."""

from muster.domain.data.digest import is_digest
from muster.domain.data.output_terms import ALL_OUTPUTS, LiveOutputs, OutputTerms, StoredAfter
from muster.domain.data.outputs import (
    LARGEST_OUTPUTS,
    MOST_OUTPUTS,
    ExecutionOutputs,
    JobOutputs,
    OutputsPass,
    OutputsRetry,
    OutputsStage,
    RankNotRetried,
    RankOutputs,
)
from muster.domain.data.upload import DepotPass
from muster.domain.fleet.secret import SecretKind
from muster.rpc.v1 import agents_pb2, data_pb2
from muster.rpc.v1 import model_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError


def execution_outputs_to_wire(outputs: ExecutionOutputs) -> pb.ExecutionOutputs:
    """What an execution has left."""
    return pb.ExecutionOutputs(
        stage=outputs.stage,
        tree=outputs.tree,
        size=outputs.size,
        files=outputs.files,
        bytes=outputs.bytes,
        left_out=outputs.left_out,
        why=outputs.why,
        at=checks.timestamp(outputs.at),
        retries=outputs.retries,
    )


def execution_outputs_from_wire(message: pb.ExecutionOutputs) -> ExecutionOutputs:
    """What an execution has left; raises WireError."""
    if message.tree and not is_digest(message.tree):
        raise WireError("ExecutionOutputs.tree", "is no SHA-256")
    return ExecutionOutputs(
        stage=checks.word(OutputsStage, message.stage, "ExecutionOutputs.stage"),
        tree=message.tree,
        size=checks.between(message.size, 0, LARGEST_OUTPUTS, "ExecutionOutputs.size"),
        files=checks.between(message.files, 0, MOST_OUTPUTS, "ExecutionOutputs.files"),
        bytes=checks.between(message.bytes, 0, LARGEST_OUTPUTS, "ExecutionOutputs.bytes"),
        left_out=checks.between(message.left_out, 0, LARGEST_OUTPUTS, "ExecutionOutputs.left_out"),
        why=checks.message(message.why),
        at=checks.optional_moment(message, "at"),
        retries=checks.between(message.retries, 0, checks.MAX_COUNT, "ExecutionOutputs.retries"),
    )


def output_terms_to_wire(terms: OutputTerms) -> pb.OutputTerms:
    """Which outputs are stored, and for how long."""
    return pb.OutputTerms(
        after=terms.after,
        only=terms.only,
        limit=terms.limit,
        keep=checks.duration(terms.keep),
        to=terms.to,
        secret=terms.secret,
        live=terms.live or "",
    )


def output_terms_from_wire(message: pb.OutputTerms) -> OutputTerms:
    """Which outputs are stored, and for how long, not checked by the rule book yet; raises WireError."""
    return OutputTerms(
        after=checks.word(StoredAfter, message.after, "OutputTerms.after"),
        only=tuple(message.only),
        limit=message.limit if message.HasField("limit") else None,
        keep=checks.span(message.keep, "OutputTerms.keep") if message.HasField("keep") else None,
        to=message.to,
        secret=message.secret,
        live=checks.word(LiveOutputs, message.live, "OutputTerms.live") if message.live else None,
    )


def outputs_pass_to_wire(shown: OutputsPass) -> agents_pb2.DataResponse:
    """What a node is told that has outputs to store."""
    depot = shown.depot
    if depot is None:
        return agents_pb2.DataResponse(unwanted=True)
    terms = None if shown.terms == ALL_OUTPUTS else output_terms_to_wire(shown.terms)
    opens = agents_pb2.DeliveredSecret(name=shown.terms.secret, kind=SecretKind.S3, values=shown.opens)
    return agents_pb2.DataResponse(
        depot=depot.depot, ticket=depot.ticket, allowed=depot.allowed, outputs=terms, key=opens if shown.opens else None
    )


def outputs_pass_from_wire(message: agents_pb2.DataResponse) -> OutputsPass:
    """What a node is told that has outputs to store; raises WireError."""
    if message.unwanted:
        return OutputsPass(depot=None)
    return OutputsPass(
        depot=DepotPass(depot=message.depot, ticket=message.ticket, allowed=message.allowed),
        terms=output_terms_from_wire(message.outputs) if message.HasField("outputs") else ALL_OUTPUTS,
        opens=dict(message.key.values),
    )


def job_outputs_to_wire(outputs: JobOutputs, following: int = 0) -> data_pb2.OutputsResponse:
    """A page of what the executions of an attempt have left; `following`: the rank with which the next one begins."""
    return data_pb2.OutputsResponse(
        job=outputs.job,
        job_name=outputs.job_name,
        attempt=outputs.attempt,
        size=outputs.size,
        depot=outputs.depot,
        ranks=(
            data_pb2.RankOutputs(
                rank=each.rank,
                role=each.role,
                outputs=execution_outputs_to_wire(each.outputs),
                ticket=each.ticket,
                store=each.store,
            )
            for each in outputs.ranks
        ),
        following=following,
    )


def job_outputs_from_wire(message: data_pb2.OutputsResponse) -> JobOutputs:
    """A page of what the executions of an attempt have left; raises WireError."""
    return JobOutputs(
        job=checks.identifier(message.job, "OutputsResponse.job"),
        job_name=checks.label(message.job_name, "OutputsResponse.job_name"),
        attempt=checks.between(message.attempt, 1, checks.MAX_COUNT, "OutputsResponse.attempt"),
        size=checks.between(message.size, 1, checks.MAX_SIZE, "OutputsResponse.size"),
        depot=checks.plain(message.depot, "OutputsResponse.depot"),
        ranks=tuple(map(_rank_from_wire, message.ranks)),
    )


def _rank_from_wire(message: data_pb2.RankOutputs) -> RankOutputs:
    checks.require(message, "outputs")
    return RankOutputs(
        rank=checks.between(message.rank, 0, checks.MAX_SIZE - 1, "RankOutputs.rank"),
        role=checks.label(message.role, "RankOutputs.role"),
        outputs=execution_outputs_from_wire(message.outputs),
        ticket=checks.plain(message.ticket, "RankOutputs.ticket"),
        store=checks.plain(message.store, "RankOutputs.store"),
    )


def outputs_retry_to_wire(retry: OutputsRetry) -> data_pb2.RetryOutputsResponse:
    """The ranks whose outputs are stored again."""
    return data_pb2.RetryOutputsResponse(
        job=retry.job,
        job_name=retry.job_name,
        attempt=retry.attempt,
        ranks=retry.ranks,
        refused=(data_pb2.RankNotRetried(rank=each.rank, why=each.why) for each in retry.refused),
    )


def outputs_retry_from_wire(message: data_pb2.RetryOutputsResponse) -> OutputsRetry:
    """The ranks whose outputs are stored again; raises WireError."""
    return OutputsRetry(
        job=checks.identifier(message.job, "RetryOutputsResponse.job"),
        job_name=checks.label(message.job_name, "RetryOutputsResponse.job_name"),
        attempt=checks.between(message.attempt, 1, checks.MAX_COUNT, "RetryOutputsResponse.attempt"),
        ranks=tuple(
            checks.between(each, 0, checks.MAX_SIZE - 1, "RetryOutputsResponse.ranks") for each in message.ranks
        ),
        refused=tuple(
            RankNotRetried(
                rank=checks.between(each.rank, 0, checks.MAX_SIZE - 1, "RankNotRetried.rank"),
                why=checks.message(each.why),
            )
            for each in message.refused
        ),
    )
