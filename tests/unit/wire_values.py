"""Hypothesis strategies for every value that travels: all that its type and the checks of muster.wire allow."""

from hypothesis import strategies as st

from muster.domain.gangs import plan, roster
from muster.domain.ids import JobId
from muster.domain.jobs import disconnect, explanation, failure, job, lifecycle, restart, view
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName, LaunchPlace, Rendezvous
from muster.domain.jobs.interactive import Interactive, MainProgramStreams
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.queueing import change, waiting
from muster.domain.jobs.queueing.used_preset import UsedPreset
from muster.domain.jobs.restart import ExitCodes, ExitRules, RestartPolicy, parse_exit_codes
from muster.domain.jobs.secret_use import KEY_FORM, SecretUse
from muster.domain.jobs.stopping.preemption import OnPreempt, PreemptSignal
from muster.wire.checks import LONGEST_SPAN
from tests.unit import checkpoint_values, output_values, volume_values
from tests.unit.fence_values import fences
from tests.unit.placing_values import affinities, capabilities, gpu_shares, pids, tolerations, topologies
from tests.unit.plain_values import (
    absolute_paths,
    addresses,
    counts,
    env_names,
    execution_ids,
    filled,
    gpu_uuids,
    job_ids,
    labels,
    labels_map,
    moments,
    node_ids,
    optional,
    port_names,
    ports,
    ranks,
    sizes,
    spans,
    texts,
    tuples_of,
)

exits = st.builds(failure.Exit, code=st.integers(0, 255), out_of_memory=st.booleans())
failures = st.builds(
    failure.Failure,
    kind=st.sampled_from(failure.FailureKind),
    message=texts,
    rank=optional(ranks),
    node=optional(node_ids),
    exit=optional(exits),
    log_tail=tuples_of(texts),
)

resources = st.builds(
    job.Resources,
    gpus=counts,
    gpu_model=optional(filled),
    mig=optional(st.sampled_from(["1g.10gb", "3g.40gb"])),
    gpu_portion=optional(counts),
    gpu_memory=optional(sizes),
    gpu_counted=optional(counts),
    cpu_millis=counts,
    memory=optional(sizes),
    shm=optional(sizes),
    disk=optional(sizes),
    cpu_limit=optional(counts),
    memory_limit=optional(sizes),
)
limits = st.integers(-1, 2**63 - 1)
securities = st.builds(
    job.Security,
    capabilities=capabilities,
    privileged=st.booleans(),
    gain_privileges=st.booleans(),
    image_user=st.booleans(),
    pids=pids,
)
secret_keys = st.from_regex(KEY_FORM, fullmatch=True)
secret_uses = st.builds(
    SecretUse,
    secret=labels,
    env=st.dictionaries(env_names, st.just("") | secret_keys, max_size=3),
    directory=optional(absolute_paths),
) | st.builds(SecretUse, secret=labels, directory=optional(absolute_paths), standard_env=st.just(value=True))
exit_codes = st.sets(st.integers(1, 255), min_size=1).map(lambda codes: parse_exit_codes(",".join(map(str, codes))))
roles = st.builds(
    job.Role,
    name=labels,
    count=st.integers(1, 3_000),
    image=optional(filled),
    pull=st.sampled_from(job.PullPolicy),
    entrypoint=optional(tuples_of(texts)),
    command=tuples_of(texts, least=1),
    env=st.dictionaries(env_names, texts, max_size=3),
    workdir=optional(absolute_paths),
    user=optional(filled),
    resources=resources,
    ports=tuples_of(st.builds(job.PortRequest, name=port_names, port=optional(ports)), by="name"),
    mounts=tuples_of(st.builds(job.Mount, source=absolute_paths, target=absolute_paths, read_only=st.booleans())),
    volumes=tuples_of(volume_values.volumes),
    inputs=tuples_of(volume_values.inputs),
    ulimits=tuples_of(st.builds(job.Ulimit, name=labels, soft=limits, hard=limits)),
    files=tuples_of(st.builds(job.InlineFile, path=filled, content=st.binary(max_size=9), executable=st.booleans())),
    secrets=tuples_of(secret_uses),
    security=securities,
    expand=st.booleans(),
    checkpoint=optional(checkpoint_values.checkpoints),
    code=optional(checkpoint_values.codes),
    outputs=output_values.output_terms,
    exit_codes=st.builds(ExitRules, restart=st.none() | exit_codes, fail=st.just(ExitCodes()) | exit_codes),
)
times = st.integers(0, restart.MOST_RESTARTS)
restarts = st.builds(
    RestartPolicy,
    limit=times,
    infrastructure=times,
    backoff=st.timedeltas(min_value=restart.SHORTEST_BACKOFF, max_value=LONGEST_SPAN),
)
frameworks = st.builds(
    Framework,
    name=st.sampled_from(FrameworkName),
    processes=optional(counts),
    rendezvous=st.sampled_from(Rendezvous),
    restarts_in_place=counts,
    launch=optional(st.sampled_from(LaunchPlace)),
)
interactives = st.builds(Interactive, setup=texts)
pool_choices = st.builds(PoolChoice, pool=labels, after=st.none() | spans)
job_specs = st.builds(
    job.JobSpec,
    name=labels,
    roles=tuples_of(roles, least=1, by="name"),
    network=st.sampled_from(job.Network),
    success=optional(st.sampled_from(lifecycle.SuccessRule) | labels),
    framework=optional(frameworks),
    dialects=tuples_of(st.sampled_from(Dialect)),
    gang_commands=optional(st.booleans()),
    priority=st.integers(-1000, 1000),
    job_class=optional(st.sampled_from(JobClass)),
    packing=st.sampled_from(job.Packing),
    max_per_node=optional(st.integers(1, 2**31 - 1)),
    node_labels=labels_map,
    pools=tuples_of(pool_choices),
    node_types=tuples_of(texts),
    exclude_nodes=tuples_of(node_ids),
    tolerations=tuples_of(tolerations),
    affinity=affinities,
    topology=topologies,
    exclusive=st.booleans(),
    timeouts=st.builds(
        job.Timeouts,
        check_in=spans,
        grace=spans,
        **dict.fromkeys(("fetch", "stall", "store"), spans),
        run=optional(spans),
        queue=optional(spans),
        expected=optional(spans),
        preempt=optional(spans),
        lost_after=st.timedeltas(disconnect.SHORTEST_LOST_AFTER, disconnect.LONGEST_LOST_AFTER),
        idle=optional(spans),
    ),
    restarts=restarts,
    on_preempt=st.builds(OnPreempt, signal=st.sampled_from(PreemptSignal), restart=st.booleans()),
    on_disconnect=st.sampled_from(disconnect.OnDisconnect),
    project=labels,
    labels=labels_map,
    interactive=optional(interactives),
    stdin=st.booleans(),
    tty=st.booleans(),
    hold=st.booleans(),
    not_before=optional(moments),
    delete_after=optional(spans),
).filter(lambda spec: spec.network is job.Network.HOST or all(role.image for role in spec.roles))

wait_reasons = st.builds(
    waiting.WaitReason,
    kind=st.sampled_from(waiting.WaitKind),
    by=texts,
    since=optional(moments),
    until=optional(moments),
)
port_leases = st.builds(roster.PortLease, name=port_names, host_port=ports, container_port=ports)
lease_tuples = tuples_of(port_leases, by="name")
members = st.builds(
    roster.Member,
    rank=ranks,
    execution=execution_ids,
    role=labels,
    node=node_ids,
    address=addresses,
    checked_in_at=moments,
    ports=lease_tuples,
    gpus=tuples_of(gpu_uuids),
)


@st.composite
def rosters(draw: st.DrawFn, size: int | None = None) -> roster.Roster:
    size = draw(st.integers(1, 4)) if size is None else size
    return draw(
        st.builds(
            roster.Roster.of,
            job=job_ids,
            job_name=labels,
            attempt=st.integers(1, 2**31 - 1),
            network=st.sampled_from(job.Network),
            members=st.tuples(
                *(
                    st.builds(
                        roster.Member,
                        rank=st.just(rank),
                        execution=execution_ids,
                        role=labels,
                        node=node_ids,
                        address=addresses,
                        checked_in_at=moments,
                        ports=lease_tuples,
                        gpus=tuples_of(gpu_uuids),
                        peer_port=st.integers(0, 65_535),
                    )
                    for rank in range(size)
                ),
            ),
        ),
    )


@st.composite
def assignments(draw: st.DrawFn) -> plan.Assignment:
    world_size = draw(st.integers(1, 9_000))
    local_world_size, node_count = draw(st.integers(1, world_size)), draw(st.integers(1, world_size))
    role, role_size = draw(roles), draw(st.integers(1, world_size))
    return plan.Assignment(
        execution=draw(execution_ids),
        job=draw(job_ids),
        job_name=draw(labels),
        sequence=draw(st.integers(1, 2**63 - 1)),
        project=draw(labels),
        framework=draw(optional(frameworks)),
        dialects=draw(tuples_of(st.sampled_from(Dialect))),
        gang_commands=draw(st.booleans()),
        attempt=draw(st.integers(1, 2**31 - 1)),
        rank=draw(st.integers(0, world_size - 1)),
        world_size=world_size,
        local_rank=draw(st.integers(0, local_world_size - 1)),
        local_world_size=local_world_size,
        node_rank=draw(st.integers(0, node_count - 1)),
        node_count=node_count,
        role=role,
        role_rank=draw(st.integers(0, role_size - 1)),
        role_size=role_size,
        fetch=draw(spans) if role.fetches else job.Timeouts().fetch,
        stall=draw(spans) if role.fetches else job.Timeouts().stall,
        network=draw(st.sampled_from(job.Network)),
        gpus=draw(tuples_of(gpu_uuids)),
        gpu_share=draw(optional(gpu_shares)),
        grace=draw(spans),
        preempt_signal=draw(st.sampled_from(PreemptSignal)),
        fence=draw(fences),
        interactive=draw(optional(interactives)),
        main_program=draw(optional(st.sampled_from(MainProgramStreams))),
        idle=draw(optional(spans)),
        saves=draw(st.booleans()),
        restore=draw(optional(checkpoint_values.to_restore)),
    )


@st.composite
def desired_lines(draw: st.DrawFn) -> plan.Desired:
    goal = draw(st.sampled_from(plan.Goal))
    its = draw(assignments() if goal is plan.Goal.PREPARE else optional(assignments()))
    me = draw(execution_ids) if its is None else its.execution
    stop = draw(optional(checkpoint_values.stop_orders)) if goal is plan.Goal.STOP else None
    return plan.Desired(execution=me, goal=goal, assignment=its, stop=stop, cause=draw(texts), store_again=draw(counts))


@st.composite
def plans(draw: st.DrawFn) -> plan.Plan:
    revision = draw(st.integers(1, 2**63 - 1))
    return plan.Plan(
        revision=revision,
        base=draw(st.integers(0, revision - 1)),
        desired=draw(tuples_of(desired_lines(), by="execution")),
        rosters=draw(tuples_of(rosters(), by="job")),
        removed=draw(tuples_of(execution_ids)),
    )


@st.composite
def reports(draw: st.DrawFn) -> plan.Report:
    stage = draw(st.sampled_from(plan.Stage))
    return plan.Report(
        execution=draw(execution_ids),
        stage=stage,
        at=draw(moments),
        detail=draw(texts),
        address=draw(addresses if stage is plan.Stage.PREPARED else optional(addresses)),
        ports=draw(lease_tuples),
        started_at=draw(optional(moments)),
        exit=draw(exits if stage is plan.Stage.EXITED else optional(exits)),
        failure=draw(failures if stage is plan.Stage.FAILED else optional(failures)),
        log_complete=draw(st.booleans()),
        no_permit_for=draw(optional(spans)),
        used_at=draw(optional(moments)),
        saved_at=draw(optional(moments)),
        gpu_busy_ms=draw(optional(st.integers(0, 2**53))),
        outputs=draw(optional(output_values.execution_outputs)),
        over_portion=draw(texts),
        checkpoints=draw(optional(checkpoint_values.told)),
    )


states = st.sampled_from(lifecycle.State)
execution_views = st.builds(
    view.ExecutionView,
    id=execution_ids,
    rank=ranks,
    role=labels,
    state=states,
    node=optional(node_ids),
    gpus=tuples_of(gpu_uuids),
    detail=texts,
    address=optional(addresses),
    ports=lease_tuples,
    failure=optional(failures),
    exit=optional(exits),
    transitions=tuples_of(st.builds(view.Transition, state=states, at=moments)),
    log_complete=st.booleans(),
    outputs=optional(output_values.execution_outputs),
)
attempt_views = st.builds(
    view.AttemptView,
    saved_at=optional(moments),
    number=st.integers(1, 2**31 - 1),
    placed_at=optional(moments),
    checked_in_at=optional(moments),
    released_at=optional(moments),
    started_at=optional(moments),
    ended_at=optional(moments),
    failure=optional(failures),
    executions=tuples_of(execution_views),
    executions_dropped=st.booleans(),
)
job_views = st.builds(
    view.JobView,
    id=st.just(JobId("")) | job_ids,
    spec=job_specs,
    owner=texts,
    sequence=st.integers(0, 2**63 - 1),
    phase=st.sampled_from(lifecycle.JobPhase),
    summary=texts,
    submitted_at=moments,
    started_at=optional(moments),
    ended_at=optional(moments),
    attempts=tuples_of(attempt_views),
    states=st.dictionaries(states, counts, max_size=3),
    failure=optional(failures),
    reasons=tuples_of(wait_reasons),
    images=tuples_of(volume_values.found_images),
    presets=tuples_of(st.builds(UsedPreset, project=texts, kind=texts, name=texts, version=counts)),
    origins=st.dictionaries(texts, texts, max_size=2),
)
explanations = st.builds(
    explanation.Explanation,
    summary=texts,
    phase=st.sampled_from(lifecycle.JobPhase),
    queue_position=counts,
    refusals=tuples_of(st.builds(explanation.NodeRefusal, node=node_ids, reason=texts)),
    pools=tuples_of(st.builds(explanation.PoolRefusal, pool=texts, reason=texts)),
    changes=tuples_of(st.builds(explanation.HelpfulChange, change=texts, why=texts)),
    estimate=st.builds(explanation.StartEstimate, about=optional(moments), latest=optional(moments)),
    awaited=tuples_of(st.builds(explanation.Awaited, rank=ranks, node=optional(node_ids), state=states, detail=texts)),
    failure=optional(failures),
    reasons=tuples_of(wait_reasons),
)
job_changes = st.builds(
    change.JobChange,
    priority=optional(st.integers(-(2**31), 2**31 - 1)),
    run=optional(spans),
    queue=optional(spans),
    expected=optional(spans),
    not_before=optional(moments),
    job_class=optional(st.sampled_from(JobClass)),
    pools=optional(tuples_of(pool_choices)),
)
log_lines = st.builds(
    view.LogLine,
    rank=ranks,
    stream=st.sampled_from(["stdout", "stderr"]),
    time=moments,
    text=st.binary(max_size=20),
    partial=st.booleans(),
    attempt=st.integers(1, 2**31 - 1),
)
