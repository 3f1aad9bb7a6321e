"""Hypothesis strategies for valid jobs, as a job file can describe them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from muster.domain.data.code import JobCode
from muster.domain.data.output_terms import LiveOutputs, OutputTerms, StoredAfter
from muster.domain.data.volume import Volume, VolumeKeep
from muster.domain.jobs.disconnect import LONGEST_LOST_AFTER, SHORTEST_LOST_AFTER, OnDisconnect
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.frameworks.framework import (
    MOST_PROCESSES,
    MOST_RESTARTS_IN_PLACE,
    Framework,
    FrameworkName,
    Rendezvous,
)
from muster.domain.jobs.interactive import NEVER_IDLE, SHORTEST_IDLE, Interactive
from muster.domain.jobs.job import (
    CAPABILITIES,
    MOST_PIDS,
    NODE_LABEL,
    InlineFile,
    JobSpec,
    Mount,
    Network,
    Packing,
    PortRequest,
    PullPolicy,
    Resources,
    Role,
    Security,
    Timeouts,
    Ulimit,
)
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import SuccessRule
from muster.domain.jobs.placing.affinity import (
    NUMERIC,
    WITHOUT_VALUES,
    Affinity,
    LabelExpression,
    LabelOperator,
    PreferredTerm,
)
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator
from muster.domain.jobs.placing.topology import NO_LEVEL, Topology
from muster.domain.jobs.restart import (
    MOST_RESTARTS,
    SHORTEST_BACKOFF,
    ExitCodes,
    ExitRules,
    RestartPolicy,
    parse_exit_codes,
)
from muster.domain.jobs.rules.filling_in import filled_in
from muster.domain.jobs.rules.job_values import (
    ENV_NAME,
    LABEL,
    MIN_CPU_LIMIT,
    PORT_NAME,
    RESERVED_ENV,
    RESERVED_PREFIX,
    ULIMITS,
)
from muster.domain.jobs.rules.placing_rules import MAX_TOLERATED, MAX_WEIGHT
from muster.domain.jobs.secret_use import KEY_FORM, ONLY_KEY, SECRETS_DIRECTORY, SecretUse
from muster.domain.jobs.stopping.preemption import LONGEST_PREEMPT_GRACE, OnPreempt, PreemptSignal
from muster.domain.visible_text import hidden_in
from tests.unit.checkpoint_values import repos, valid_checkpoints
from tests.unit.jobfile.valid_inputs import inputs

labels = st.from_regex(f"{LABEL}", fullmatch=True).filter(lambda name: len(name) <= 40)
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
names = texts.filter(lambda text: hidden_in(text) is None)
env_names = st.from_regex(ENV_NAME, fullmatch=True).filter(
    lambda name: name not in RESERVED_ENV and not name.startswith(RESERVED_PREFIX),
)
paths = st.from_regex(r"/[a-z][a-z:._ ]{0,8}[a-z]", fullmatch=True).filter(lambda path: path != "/muster")
moments = st.datetimes(datetime(2000, 1, 1), datetime(2899, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone
spans = st.timedeltas(timedelta(microseconds=1), timedelta(days=365))
limits = st.integers(-1, 2**40)
exit_codes = st.sets(st.integers(1, 255), min_size=1).map(lambda codes: parse_exit_codes(",".join(map(str, codes))))
restarts = st.just(RestartPolicy()) | st.builds(
    RestartPolicy,
    limit=st.integers(0, MOST_RESTARTS),
    infrastructure=st.integers(0, MOST_RESTARTS),
    backoff=st.timedeltas(SHORTEST_BACKOFF, timedelta(days=365)),
)
exit_rules = st.builds(ExitRules, restart=st.none() | exit_codes, fail=st.just(ExitCodes()) | exit_codes)


@st.composite
def capped(draw: st.DrawFn) -> Resources:
    """What is reserved, and caps that are not below it."""
    cpus, memory = draw(st.integers(1, 10**6)), draw(st.none() | st.integers(6 * 2**20, 2**50))
    mig = draw(st.none() | st.sampled_from(["1g.10gb", "1g.10gb+me", "1c.3g.40gb"]))
    part = draw(st.none() | st.integers(10, 1000)) if mig is None else None
    size = draw(st.none() | st.integers(2**28, 2**40)) if mig is None and part is None else None
    return Resources(
        gpus=draw(st.integers(0 if (mig, part, size) == (None, None, None) else 1, 64)),
        mig=mig,
        gpu_portion=part,
        gpu_memory=size,
        gpu_model=draw(st.none() | st.sampled_from(["H100", "RTX 4090", "5090", "no"])),
        cpu_millis=cpus,
        memory=memory,
        disk=draw(st.none() | st.integers(2**20, 2**51)),
        cpu_limit=draw(st.none() | st.integers(max(cpus, MIN_CPU_LIMIT), 10**7)),
        memory_limit=draw(st.none() | st.just(0) | st.integers(memory or 6 * 2**20, 2**51)),
    )


resources = capped()
pool_choices = st.lists(
    st.builds(PoolChoice, pool=labels, after=st.none() | spans), max_size=3, unique_by=lambda choice: choice.pool
).map(lambda choices: tuple(choices) if any(choice.after is None for choice in choices) else ())


@st.composite
def tolerated(draw: st.DrawFn) -> Toleration:
    operator = draw(st.sampled_from(TolerationOperator))
    keys = st.from_regex(NODE_LABEL, fullmatch=True)
    effect = draw(st.none() | st.sampled_from(TaintEffect))
    return Toleration(
        key=draw(keys if operator is TolerationOperator.EQUAL else st.just("") | keys),
        operator=operator,
        value=draw(names) if operator is TolerationOperator.EQUAL else "",
        effect=effect,
        seconds=draw(st.none() | st.integers(1, MAX_TOLERATED)) if effect is TaintEffect.NO_EXECUTE else None,
    )


@st.composite
def expressions(draw: st.DrawFn) -> LabelExpression:
    operator = draw(st.sampled_from(LabelOperator))
    values = st.integers(-(10**9), 10**9).map(str) if operator in NUMERIC else names
    most = 0 if operator in WITHOUT_VALUES else 1 if operator in NUMERIC else 3
    return LabelExpression(
        key=draw(st.from_regex(NODE_LABEL, fullmatch=True)),
        operator=operator,
        values=tuple(draw(st.lists(values, min_size=min(most, 1), max_size=most))),
    )


terms = st.lists(expressions(), min_size=1, max_size=2).map(tuple)
affinities = st.builds(
    Affinity,
    required=st.lists(terms, max_size=2).map(tuple),
    preferred=st.lists(st.builds(PreferredTerm, weight=st.integers(1, MAX_WEIGHT), all=terms), max_size=2).map(tuple),
)
levels = st.none() | st.from_regex(NODE_LABEL, fullmatch=True)
topologies = st.builds(Topology, required=levels.filter(lambda level: level != NO_LEVEL), preferred=levels)
on_preempts = st.builds(OnPreempt, signal=st.sampled_from(PreemptSignal), restart=st.booleans())
ports = st.lists(
    st.builds(PortRequest, name=st.from_regex(PORT_NAME, fullmatch=True)),
    max_size=3,
    unique_by=lambda port: port.name,
).map(tuple)
files = st.lists(
    st.builds(
        InlineFile,
        path=paths,
        content=st.binary(max_size=20) | st.text(max_size=20).map(str.encode),
        executable=st.booleans(),
    ),
    max_size=2,
    unique_by=lambda file: file.path,
).map(tuple)
secret_keys = st.from_regex(KEY_FORM, fullmatch=True)


@st.composite
def secret_uses(draw: st.DrawFn, taken: frozenset[str], *, contained: bool) -> tuple[SecretUse, ...]:
    """Secrets of a role that has variables of these names, with no mount where they lie."""
    uses: list[SecretUse] = []
    for name in draw(st.lists(labels, max_size=3, unique=True)):
        drawn = draw(st.dictionaries(env_names, st.just(ONLY_KEY) | secret_keys, max_size=2))
        env = {variable: key for variable, key in drawn.items() if variable not in taken}
        taken |= env.keys()
        own = f"{SECRETS_DIRECTORY}/{name}"
        places = [own, *([f"/secrets-of-{name}"] if contained else [])]
        standard = not env and draw(st.booleans())
        files = st.sampled_from(places) if not env and not standard else st.none() | st.sampled_from(places)
        uses.append(SecretUse(secret=name, env=env, directory=draw(files), standard_env=standard))
    return tuple(uses)


@st.composite
def volumes(draw: st.DrawFn, *, contained: bool) -> tuple[Volume, ...]:
    """Volumes of a role, none of which lies in another one."""
    found = []
    for name in sorted(draw(st.sets(labels, max_size=3))):
        path = f"/volume-{name}" if contained and draw(st.booleans()) else None
        amount = draw(st.integers(2**20, 2**50))
        if contained and draw(st.booleans()):
            found.append(Volume(name=name, path=path, tmpfs=amount))
        elif draw(st.booleans()):
            writable = not contained or draw(st.booleans())
            found.append(Volume(name=name, path=path, size=amount, keep=VolumeKeep.NODE, writable=writable))
        else:
            found.append(Volume(name=name, path=path, size=amount))
    return tuple(found)


output_terms = st.builds(
    OutputTerms,
    after=st.sampled_from(StoredAfter),
    only=st.sampled_from(((), ("**/*.pt", "plots/"))),
    limit=st.none() | st.integers(2**20, 2**50),
    keep=st.none() | st.just(timedelta(microseconds=1)),
) | st.builds(OutputTerms, live=st.sampled_from([LiveOutputs.READ_ONLY, LiveOutputs.OFF]))


words = st.lists(texts, min_size=1, max_size=4).filter(lambda items: bool(items[0].strip())).map(tuple)
plain_processes = st.builds(
    Role,
    name=labels,
    count=st.integers(1, 50),
    command=words,
    env=st.dictionaries(env_names, texts, max_size=3),
    workdir=st.none() | paths,
    resources=resources,
    ports=ports,
    files=files,
    exit_codes=exit_rules,
    expand=st.booleans(),
    outputs=output_terms,
)


@st.composite
def processes_with_secrets(draw: st.DrawFn) -> Role:
    role = draw(plain_processes)
    uses = draw(secret_uses(frozenset(role.env), contained=False))
    lent = replace(role, volumes=draw(volumes(contained=False)), inputs=draw(inputs(contained=False)))
    code, saves = draw(code_beside(role)), draw(valid_checkpoints(contained=False))
    return replace(lent, secrets=uses, code=code, checkpoint=saves)


@st.composite
def code_beside(draw: st.DrawFn, role: Role) -> JobCode | None:
    """Code to which files of the role may be written."""
    code = draw(repos)
    return code if code is None or role.files else replace(code, writable=draw(st.booleans()))


processes = processes_with_secrets()


@st.composite
def ulimits(draw: st.DrawFn) -> Ulimit:
    soft = draw(limits)
    hard = -1 if soft == -1 else draw(st.just(-1) | st.integers(soft, 2**41))
    return Ulimit(name=draw(st.sampled_from(ULIMITS)), soft=soft, hard=hard)


securities = st.builds(
    Security,
    capabilities=st.sets(st.sampled_from(sorted(CAPABILITIES)), max_size=3).map(sorted).map(tuple),
    privileged=st.booleans(),
    gain_privileges=st.booleans(),
    pids=st.none() | st.integers(1, MOST_PIDS),
)


@st.composite
def containers(draw: st.DrawFn) -> Role:
    role = draw(processes)
    limits_of = draw(st.lists(ulimits(), max_size=2, unique_by=lambda limit: limit.name))
    user = draw(st.none() | st.sampled_from(["root", "1000", "1000:100"]))
    mounts = st.builds(Mount, source=paths, target=paths, read_only=st.booleans())
    return Role(
        name=role.name,
        count=role.count,
        image=draw(st.sampled_from(["a", "reg:5000/a/b:1.0", "a@sha256:00"])),
        pull=draw(st.sampled_from(PullPolicy)),
        entrypoint=draw(st.none() | st.just(()) | words),
        command=draw(st.just(()) | words),
        env=role.env,
        user=user,
        security=replace(draw(securities), image_user=user is None and draw(st.booleans())),
        resources=draw(st.builds(Resources, shm=st.none() | st.integers(2**20, 2**40))),
        ports=role.ports,
        mounts=tuple(draw(st.lists(mounts, max_size=2, unique_by=lambda mount: mount.target))),
        volumes=draw(volumes(contained=True)),
        inputs=draw(inputs(contained=True)),
        code=draw(code_beside(role)),
        ulimits=tuple(sorted(limits_of, key=lambda limit: limit.name)),
        files=role.files,
        secrets=draw(secret_uses(frozenset(role.env), contained=True)),
        exit_codes=role.exit_codes,
        expand=role.expand,
        outputs=role.outputs,
        checkpoint=draw(valid_checkpoints(contained=True)),
    )


frameworks = st.builds(
    Framework,
    name=st.just(FrameworkName.PYTORCH),
    processes=st.none() | st.integers(1, MOST_PROCESSES),
    rendezvous=st.sampled_from(Rendezvous),
    restarts_in_place=st.integers(0, MOST_RESTARTS_IN_PLACE),
) | st.builds(Framework, name=st.sampled_from([FrameworkName.JAX, FrameworkName.XGBOOST]), processes=st.just(1))
"""Frameworks that ask nothing else of a job."""


def jobs(roles: st.SearchStrategy[Role], networks: list[Network]) -> st.SearchStrategy[JobSpec]:
    return st.builds(
        JobSpec,
        name=labels,
        roles=st.lists(roles, min_size=1, max_size=3, unique_by=lambda role: role.name).map(tuple),
        network=st.sampled_from(networks),
        success=st.sampled_from(SuccessRule),
        priority=st.integers(-1000, 1000),
        job_class=st.none() | st.sampled_from(JobClass),
        project=labels,
        packing=st.sampled_from(Packing),
        max_per_node=st.none() | st.integers(1, 10_000),
        node_labels=st.dictionaries(st.sampled_from(["rack", "muster.io/zone", "1"]), names, max_size=2),
        pools=pool_choices,
        node_types=st.lists(names.filter(str.strip), max_size=2).map(tuple),
        exclude_nodes=st.lists(names.filter(str.strip), max_size=2).map(tuple),
        tolerations=st.lists(tolerated(), max_size=3).map(tuple),
        affinity=affinities,
        topology=topologies,
        exclusive=st.booleans(),
        timeouts=st.builds(
            Timeouts,
            check_in=spans,
            grace=spans,
            fetch=spans,
            stall=spans,
            run=st.none() | st.timedeltas(timedelta(hours=1), timedelta(days=365)),
            queue=st.none() | spans,
            expected=st.none() | st.timedeltas(timedelta(microseconds=1), timedelta(hours=1)),
            lost_after=st.timedeltas(SHORTEST_LOST_AFTER, LONGEST_LOST_AFTER),
            preempt=st.none() | st.timedeltas(timedelta(microseconds=1), LONGEST_PREEMPT_GRACE),
            idle=st.none() | st.just(NEVER_IDLE) | st.timedeltas(SHORTEST_IDLE, timedelta(days=365)),
        ),
        hold=st.booleans(),
        not_before=st.none() | moments,
        delete_after=st.none() | spans,
        restarts=restarts,
        on_preempt=on_preempts,
        on_disconnect=st.sampled_from(OnDisconnect),
        framework=st.none() | frameworks,
        dialects=st.lists(st.sampled_from(Dialect), max_size=2, unique=True).map(tuple),
        labels=st.dictionaries(st.sampled_from(["paper", "team/owner", "1"]), names, max_size=2),
    )


@st.composite
def interactive(draw: st.DrawFn, others: st.SearchStrategy[JobSpec]) -> JobSpec:
    """A job in which people work, some of whose roles have no command."""
    spec = draw(others)
    roles = tuple(
        replace(role, command=(), entrypoint=None if role.image is None else ())
        if not role.command or draw(st.booleans())
        else role
        for role in spec.roles
    )
    setup = draw(st.just("") | texts.filter(str.strip))
    restarts = replace(spec.restarts, limit=0)
    stdin, tty = (
        draw(st.sampled_from([(False, False), (True, False), (True, True)])) if roles[0].command else (False, False)
    )
    interactive = Interactive(setup=setup)
    return replace(spec, roles=roles, restarts=restarts, interactive=interactive, stdin=stdin, tty=tty)


def from_rank0(spec: JobSpec, name: FrameworkName) -> JobSpec:
    """The job with a framework whose processes rank 0 starts."""
    return replace(spec, framework=Framework(name=name), success=None, max_per_node=None)


any_job = (
    jobs(containers(), [Network.HOST, Network.BRIDGE])
    | jobs(processes | containers(), [Network.HOST])
    | interactive(jobs(processes | containers(), [Network.HOST]))
    | st.builds(
        from_rank0,
        jobs(processes | containers(), [Network.HOST]),
        st.sampled_from([FrameworkName.MPI, FrameworkName.HOROVOD, FrameworkName.DEEPSPEED]),
    )
).map(filled_in)
