"""Jobs with something wrong, each with the beginning of the sentence that says what."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName, LaunchPlace, Rendezvous
from muster.domain.jobs.interactive import Interactive
from muster.domain.jobs.job import (
    InlineFile,
    JobSpec,
    Mount,
    Network,
    PortRequest,
    Resources,
    Role,
    Security,
    Timeouts,
    Ulimit,
)
from muster.domain.jobs.lifecycle import SuccessRule
from muster.domain.jobs.placing.affinity import Affinity, LabelExpression, LabelOperator, PreferredTerm
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator
from muster.domain.jobs.placing.topology import Topology
from muster.domain.jobs.restart import RestartPolicy
from muster.domain.jobs.secret_use import SecretUse

PROCESS = JobSpec(name="train", roles=(Role(command=("python", "train.py")),))
CONTAINER = JobSpec(name="train", roles=(Role(image="trainer:1", command=("python", "train.py")),))
TWO = JobSpec(name="train", roles=(Role(name="a", command=("x",)), Role(name="b", command=("x",))))

MIXED = replace(TWO, roles=(TWO.roles[0], Role(name="b", image="trainer:1")))


def job(spec: JobSpec = PROCESS, **changes: Any) -> JobSpec:
    return replace(spec, **changes)


def role(spec: JobSpec = PROCESS, **changes: Any) -> JobSpec:
    return replace(spec, roles=(replace(spec.roles[0], **changes),))


def framed(name: str, spec: JobSpec = PROCESS, **changes: Any) -> JobSpec:
    return replace(spec, framework=Framework(name=FrameworkName(name), **changes))


def spoken(name: str, spec: JobSpec = PROCESS) -> JobSpec:
    return replace(spec, dialects=(Dialect(name),))


def tolerating(**changes: Any) -> JobSpec:
    return job(tolerations=(Toleration(**changes),))


def required(*terms: tuple[LabelExpression, ...]) -> JobSpec:
    return job(affinity=Affinity(required=terms))


def preferred(*terms: PreferredTerm) -> JobSpec:
    return job(affinity=Affinity(preferred=terms))


def compared(key: str, operator: str, *values: str) -> LabelExpression:
    return LabelExpression(key=key, operator=LabelOperator(operator), values=values)


ANYTHING = (compared("a", "Exists"),)


def needs(**resources: Any) -> JobSpec:
    return role(resources=Resources(**resources))


def times(**spans: timedelta) -> JobSpec:
    return job(timeouts=Timeouts(**spans))


REFUSED: Sequence[tuple[JobSpec, str]] = (
    (job(name="Train"), "name: must be 1 to 63 lower-case letters, digits and hyphens"),
    (job(name=""), "name: must be 1 to 63 lower-case letters"),
    (job(project="a_b"), "project: must be 1 to 63 lower-case letters"),
    (job(priority=1001), "priority: must be at most 1000, not 1001"),
    (job(labels={"a b": "x"}), 'labels["a b"]: "a b" is no name of a label'),
    (job(labels={"a": "x" * 257}), "labels.a: has 257 characters; the value of a label has at most 256"),
    (job(labels={f"a{number}": "" for number in range(65)}), "labels: has 65 labels; 64 are the most"),
    (job(max_per_node=0), "max_per_node: must be at least 1, not 0"),
    (job(pools=(PoolChoice(pool="H 100"),)), "pools[0].pool: must be 1 to 63 lower-case letters"),
    (job(pools=(PoolChoice(pool="a"), PoolChoice(pool="a"))), 'pools[1].pool: "a" is the pool of pools[0], too'),
    (job(pools=(PoolChoice(pool="a", after=timedelta(seconds=1)),)), "pools: has no pool to begin with"),
    (job(pools=(PoolChoice(pool="a"), PoolChoice(pool="b", after=timedelta()))), "pools[1].after: must be "),
    (job(pools=tuple(PoolChoice(pool=f"p{each}") for each in range(17))), "pools: names 17 pools; 16 are the most"),
    (job(node_types=("",)), "node_type[0]: is empty"),
    (job(node_types=tuple(map(str, range(17)))), "node_type: names 17 types; 16 are the most"),
    (job(exclude_nodes=("a\x1b",)), "exclude_nodes[0]: has the character"),
    (job(exclude_nodes=tuple(map(str, range(257)))), "exclude_nodes: names 257 nodes; 256 are the most"),
    (tolerating(), "tolerations[0].key: is missing; only a toleration with operator: Exists is for taints of any key"),
    (tolerating(key="a b"), 'tolerations[0].key: "a b" is no name of a label'),
    (tolerating(key="a", value="x\x1b"), "tolerations[0].value: has the character"),
    (
        tolerating(key="a", value="x", operator=TolerationOperator.EXISTS),
        "tolerations[0].value: stands beside operator: Exists, which takes any value",
    ),
    (tolerating(key="a", seconds=60), "tolerations[0].seconds: is for effect: NoExecute alone"),
    (
        tolerating(key="a", effect=TaintEffect.NO_EXECUTE, seconds=0),
        "tolerations[0].seconds: must be at least 1, not 0",
    ),
    (job(tolerations=(Toleration(key="a"),) * 17), "tolerations: names 17 taints; 16 are the most"),
    (required((compared("a b", "Exists"),)), 'affinity.required[0][0].key: "a b" is no name of a label'),
    (
        required(ANYTHING, (compared("a", "In"),)),
        "affinity.required[1][0].values: is missing; operator: In needs at least one",
    ),
    (
        required((compared("a", "DoesNotExist", "x"),)),
        "affinity.required[0][0].values: stands beside operator: DoesNotExist, which takes none; leave it out",
    ),
    (required((compared("a", "Gt", "1", "2"),)), "affinity.required[0][0].values: must be one number for operator: Gt"),
    (
        required((compared("a", "Lt", "1.5"),)),
        'affinity.required[0][0].values[0]: must be a whole number for operator: Lt, not "1.5"',
    ),
    (required((compared("a", "In", "x\x1b"),)), "affinity.required[0][0].values[0]: has the character"),
    (
        required((compared("a", "In", *map(str, range(65))),)),
        "affinity.required[0][0].values: names 65 values; 64 are the most",
    ),
    (required(()), "affinity.required[0]: has no expressions; give it at least one, or remove it"),
    (required(ANYTHING * 17), "affinity.required[0]: names 17 expressions; 16 are the most"),
    (required(*[ANYTHING] * 17), "affinity.required: names 17 terms; 16 are the most"),
    (preferred(*[PreferredTerm(all=ANYTHING)] * 17), "affinity.preferred: names 17 terms; 16 are the most"),
    (
        preferred(PreferredTerm(weight=101, all=ANYTHING)),
        "affinity.preferred[0].weight: must be at most 100, not 101",
    ),
    (job(topology=Topology(required="a b")), 'topology.required: "a b" is no name of a label'),
    (job(topology=Topology(preferred="-")), 'topology.preferred: "-" is no name of a label'),
    (job(topology=Topology(required="none")), "topology.required: is none, which is for `preferred`"),
    (preferred(PreferredTerm(all=())), "affinity.preferred[0].all: has no expressions"),
    (job(node_labels={"a b": "x"}), 'node_labels["a b"]: "a b" is no name of a label'),
    (job(node_labels={"a": "x\x1b[2J"}), "node_labels.a: has the character \\x1b, which cannot be seen"),
    (role(workdir="/a\u202eb"), "roles[0].workdir: has the character \\u202e, which cannot be seen"),
    (job(roles=()), "roles: is empty; leave it out, or name at least one role"),
    (job(TWO, roles=(TWO.roles[0], TWO.roles[0])), 'roles[1].name: "a" is the role name of roles[0], too'),
    (job(TWO, roles=tuple(replace(each, count=6000) for each in TWO.roles)), "roles: has 12000 executions"),
    (job(success="chief"), 'success: must be all, rank0 or the name of a role, not "chief"'),
    (role(name="rank0"), 'roles[0].name: cannot be "rank0", which means something else in success'),
    (framed("pytorch", processes=65), "framework.processes: must be gpu or a whole number from 1 to 64, not 65"),
    (
        framed("jax", processes=2),
        "framework.processes: cannot be 2: jax has one process in each execution",
    ),
    (framed("pytorch", restarts_in_place=101), "framework.restarts_in_place: must be at most 100, not 101"),
    (
        framed("xgboost", rendezvous=Rendezvous.C10D),
        "framework.rendezvous: is for pytorch alone, and the framework is xgboost",
    ),
    (
        framed("tensorflow", role(name="trainer")),
        'roles[0].name: tensorflow knows chief, master, worker, ps and evaluator, not "trainer"',
    ),
    (framed("tensorflow", role(name="chief", count=2)), "roles[0].count: must be 1: tensorflow has at most one chief"),
    (
        framed("tensorflow", job(TWO, roles=tuple(replace(TWO.roles[0], name=each) for each in ("chief", "master")))),
        "roles[1].name: is the same to tensorflow as the other of chief and master; keep one of them",
    ),
    (framed("tensorflow", role(count=3000)), "roles: has 3000 executions; tensorflow has at most 2000"),
    (
        framed("lightgbm", job(CONTAINER, network=Network.BRIDGE)),
        "network: bridge hides its own address from lightgbm, which finds itself by it in the list; use network: host",
    ),
    (
        framed("tensorflow", role(env={"TF_CONFIG": "{}"})),
        "roles[0].env.TF_CONFIG: is set by framework tensorflow; take it out of env",
    ),
    (
        framed("ray", replace(role(CONTAINER), network=Network.BRIDGE)),
        "network: bridge lets nobody through to ports that ray opens; use network: host",
    ),
    (framed("ray", role(CONTAINER, command=())), "roles[0].command: is missing: with ray the nodes"),
    (
        framed("ray", role(env={"RAY_ADDRESS": "local"})),
        "roles[0].env.RAY_ADDRESS: is set by framework ray; take it out of env",
    ),
    (
        framed("mpi", job(CONTAINER, network=Network.BRIDGE)),
        "network: mpi opens ports that it does not declare; use network: host",
    ),
    (framed("horovod", job(max_per_node=2)), "max_per_node: must be 1: with horovod every node has one execution"),
    (
        framed("mpi", job(success=SuccessRule.ALL)),
        "success: must be rank0: with mpi the other executions wait until they are stopped",
    ),
    (
        framed("deepspeed", job(gang_commands=False)),
        "gang_commands: must be true: with deepspeed rank 0 starts processes in the other executions",
    ),
    (
        framed("mpi", launch=LaunchPlace.ALL),
        "framework.launch: cannot be all: with mpi the command runs on rank 0 alone",
    ),
    (
        framed("pytorch", launch=LaunchPlace.RANK0),
        "framework.launch: cannot be rank0: with pytorch the command runs in every execution",
    ),
    (
        framed("mpi", role(env={"HYDRA_LAUNCHER": "fork"})),
        "roles[0].env.HYDRA_LAUNCHER: is set by framework mpi; take it out of env",
    ),
    (job(dialects=(Dialect.SLURM, Dialect.SLURM)), 'dialects[1]: "slurm" is the dialect of dialects[0], too'),
    (
        spoken("slurm", role(env={"SLURM_NTASKS": "8"})),
        "roles[0].env.SLURM_NTASKS: is set by the dialect slurm; take it out of env",
    ),
    (
        spoken("runai", role(secrets=(SecretUse(secret="a", env={"JOB_NAME": "k"}),))),
        "roles[0].secrets[0].env: sets JOB_NAME, which the dialect runai sets; use another name",
    ),
    (
        spoken("valohai", role(env={"VALOHAI_PORT": "1"})),
        "roles[0].env.VALOHAI_PORT: tells valohai-utils that it is in a deployment; take it out of env",
    ),
    (
        spoken("valohai", role(CONTAINER, mounts=(Mount(source="/a", target="/valohai/outputs/b"),))),
        "roles[0].mounts[0].target: covers /valohai/outputs/b, which the dialect valohai fills itself",
    ),
    (
        spoken("valohai", role(CONTAINER, mounts=(Mount(source="/a", target="/valohai"),))),
        "roles[0].mounts[0].target: covers /valohai, which the dialect valohai fills itself",
    ),
    (
        spoken("valohai", role(CONTAINER, files=(InlineFile(path="/valohai/config/x", content=b""),))),
        'roles[0].files[0].path: "/valohai/config/x" is in a directory that the dialect valohai fills itself',
    ),
    (
        spoken("valohai", role(CONTAINER, secrets=(SecretUse(secret="a", directory="/valohai/inputs/a"),))),
        'roles[0].secrets[0].directory: "/valohai/inputs/a" is in a directory that the dialect valohai fills itself',
    ),
    (job(network=Network.BRIDGE), "network: bridge needs an image"),
    (job(MIXED, network=Network.BRIDGE), "network: bridge needs an image; role a has none"),
    (role(count=10_001), "roles[0].count: must be at most 10000, not 10001"),
    (role(name="x" * 62, count=1000), "roles[0].name: makes host names longer than 63 characters"),
    (role(CONTAINER, image="UPPER"), "roles[0].image: is not the name of an image (lower case only)"),
    (role(command=()), "roles[0].command: is missing: without an image there is nothing to run"),
    (role(command=(" ",)), "roles[0].command: begins with an empty word"),
    (role(command=("x", "a" * 2**17)), "roles[0].command: has a word of 131072 bytes; Linux takes at most 131071"),
    (role(env={"a b": "x"}), 'roles[0].env["a b"]: "a b" is no name of a variable'),
    (role(env={"MUSTER_RANK": "1"}), "roles[0].env.MUSTER_RANK: is set by Muster for every execution"),
    (role(env={"A": "x" * 200_000}), "roles[0].env.A: has with its name 200002 bytes; Linux takes at most 131071"),
    (role(workdir="data"), "roles[0].workdir: must be an absolute path without .."),
    (role(CONTAINER, user="a b"), "roles[0].user: must be a name or number"),
    (role(user="root"), "roles[0].user: needs an image: a plain process cannot have it"),
    (role(entrypoint=()), "roles[0].entrypoint: needs an image"),
    (role(mounts=(Mount(source="/a", target="/b"),)), "roles[0].mounts: needs an image"),
    (role(ulimits=(Ulimit(name="nofile", soft=1, hard=1),)), "roles[0].ulimits: needs an image"),
    (role(security=Security(privileged=True)), "roles[0].security.privileged: needs an image"),
    (needs(shm=2**30), "roles[0].resources.shm: needs an image"),
    (needs(gpus=1000), "roles[0].resources.gpus: must be at most 64, not 1000"),
    (needs(gpu_model=" "), "roles[0].resources.gpu_model: is empty"),
    (
        needs(gpus=1, mig="1g.10g"),
        'roles[0].resources.mig: "1g.10g" is no MIG profile; profiles are written like 1g.10gb',
    ),
    (needs(mig="1g.10gb"), "roles[0].resources.gpus: is how many MIG devices it gets, so it must be at least 1"),
    (
        needs(gpus=1, gpu_portion=9),
        "roles[0].resources.gpu_portion: must be a part of a GPU from 0.01 to 1 such as 0.5",
    ),
    (needs(gpus=1, gpu_portion=1001), "roles[0].resources.gpu_portion: must be a part of a GPU from 0.01 to 1"),
    (needs(gpu_portion=500), "roles[0].resources.gpus: is of how many GPUs it gets a part, so it must be at least 1"),
    (needs(gpus=1, gpu_memory=20), "roles[0].resources.gpu_memory: is 20 bytes; the least is 256Mi"),
    (
        needs(gpus=1, gpu_portion=500, gpu_memory=2**30),
        "roles[0].resources.gpu_memory: cannot be together with gpu_portion: GPUs are given by one of mig,",
    ),
    (
        needs(gpus=1, gpu_portion=500, mig="1g.10gb"),
        "roles[0].resources.gpu_portion: cannot be together with mig: GPUs are given by one of mig,",
    ),
    (needs(cpu_millis=0), "roles[0].resources.cpus: must be above zero"),
    (needs(cpu_millis=100_000_001), "roles[0].resources.cpus: is more than 100000 CPUs"),
    (needs(memory=5), "roles[0].resources.memory: is 5 bytes; the least is 6Mi"),
    (needs(memory=0), "roles[0].resources.memory: must be above zero"),
    (needs(memory=2**61), "roles[0].resources.memory: is more than 1024Pi"),
    (needs(disk=5), "roles[0].resources.disk: is 5 bytes; the least is 1Mi"),
    (needs(cpu_limit=2, cpu_millis=1), "roles[0].resources.cpu_limit: is 2m; the least limit is 10m"),
    (
        needs(cpu_limit=1500, cpu_millis=2000),
        "roles[0].resources.cpu_limit: is 1.5, less than the CPUs that are reserved (cpus: 2)",
    ),
    (needs(memory_limit=5), "roles[0].resources.memory_limit: is 5 bytes; the least is 6Mi"),
    (
        needs(memory_limit=2**30, memory=2**31),
        "roles[0].resources.memory_limit: is 1Gi, less than what is reserved (memory: 2Gi)",
    ),
    (role(ports=(PortRequest(name="a_b"),)), "roles[0].ports[0].name: must be a word of at most 15 lower-case"),
    (role(ports=(PortRequest(name="a" * 32),)), "roles[0].ports[0].name: must be a word of at most 15 lower-case"),
    (role(ports=(PortRequest(name="a", port=70_000),)), "roles[0].ports[0].port: must be at most 65535"),
    (
        role(ports=(PortRequest(name="a"), PortRequest(name="a"))),
        'roles[0].ports[1].name: "a" is the port name of ports[0], too',
    ),
    (role(CONTAINER, mounts=(Mount(source="/a", target="/"),)), "roles[0].mounts[0]: cannot cover the whole container"),
    (
        role(CONTAINER, mounts=(Mount(source="/a", target="/muster/config"),)),
        "roles[0].mounts[0]: cannot cover /muster",
    ),
    (
        role(CONTAINER, mounts=(Mount(source="/a", target="/t"), Mount(source="/b", target="/t"))),
        'roles[0].mounts[1].target: "/t" is the target of mounts[0], too',
    ),
    (
        role(CONTAINER, ulimits=(Ulimit(name="nofile", soft=2, hard=1),)),
        "roles[0].ulimits.nofile: has a soft limit above the hard one",
    ),
    (role(CONTAINER, ulimits=(Ulimit(name="x", soft=1, hard=1),)), 'roles[0].ulimits.x: "x" is no resource limit'),
    (
        role(CONTAINER, security=Security(capabilities=("CAP_CHOWN",))),
        'roles[0].security.capabilities[0]: "CAP_CHOWN" is no capability of Linux',
    ),
    (role(CONTAINER, user="1", security=Security(image_user=True)), "roles[0].security.image_user: stands beside user"),
    (role(files=(InlineFile(path="../x", content=b""),)), "roles[0].files[0].path: must be the path of a file"),
    (
        role(files=(InlineFile(path="a/" * 99 + "x", content=b""),)),
        "roles[0].files[0].path: leads through more than 64",
    ),
    (role(files=(InlineFile(path="x", content=b"x" * 2**21),)), "roles[0].files[0]: makes the files of the job larger"),
    (
        role(files=(InlineFile(path="x", content=b""), InlineFile(path="x", content=b""))),
        'roles[0].files[1].path: "x" is the path of files[0], too',
    ),
    (role(secrets=(SecretUse(secret="A", directory="/muster/secrets/A"),)), "roles[0].secrets[0].secret: must be 1 to"),
    (role(secrets=(SecretUse(secret="a", env={"RANK": "k"}),)), "roles[0].secrets[0].env: is set by Muster"),
    (
        role(secrets=(SecretUse(secret="a", directory="/dev/a"),)),
        'roles[0].secrets[0].directory: "/dev/a" is the system\'s own',
    ),
    (
        role(env={"X": "1"}, secrets=(SecretUse(secret="a", env={"X": "k"}),)),
        "roles[0].secrets[0]: sets X, which env sets, too",
    ),
    (
        role(expand=True, command=("a", "--rank={{muster:rnak}}")),
        'roles[0].command: "{{muster:rnak}}": is no placeholder; did you mean "{{muster:rank}}"?',
    ),
    (
        role(expand=True, env={"FIRST": "{{muster:address:worker-7}}"}),
        'roles[0].env.FIRST: "{{muster:address:worker-7}}": the job has no execution "worker-7"',
    ),
    (
        role(expand=True, env={"URL": "http://{{muster:address}}:{{muster:port:http}}"}),
        'roles[0].env.URL: "{{muster:port:http}}": worker has no port "http"',
    ),
    (
        role(expand=True, files=(InlineFile(path="x", content=b"{{muster:port:worker-0:http}}"),)),
        'roles[0].files[0]: "{{muster:port:worker-0:http}}": worker-0 has no port "http"',
    ),
    (times(grace=timedelta()), "timeouts.grace: must be above zero"),
    (times(run=timedelta(days=366)), "timeouts.run: is longer than 365d"),
    (times(queue=timedelta()), "timeouts.queue: must be above zero"),
    (times(expected=timedelta(days=366)), "timeouts.expected: is longer than 365d"),
    (
        times(run=timedelta(hours=1), expected=timedelta(hours=2)),
        "timeouts.expected: is longer than the job may run (timeouts.run: 1h)",
    ),
    (job(delete_after=timedelta()), "delete_after: must be above zero"),
    (
        job(not_before=datetime(1999, 12, 31, tzinfo=UTC)),
        'not_before: must be between 2000 and 2899, not "1999-12-31 00:00:00+00:00"',
    ),
    (times(lost_after=timedelta(seconds=59)), "timeouts.lost_after: is 59s; the least is 1m"),
    (times(preempt=timedelta(hours=2)), "timeouts.preempt: is 2h; the most is 1h"),
    (times(idle=timedelta(seconds=9)), "timeouts.idle: is 9s; the least is 10s"),
    (
        job(interactive=Interactive(), restarts=RestartPolicy(limit=2)),
        "restarts.limit: must be 0, not 2: an interactive",
    ),
    (
        job(role(CONTAINER, entrypoint=("serve",), command=()), interactive=Interactive()),
        "roles[0].entrypoint: needs a command beside it: without one an interactive job waits",
    ),
    (job(interactive=Interactive(setup=" ")), "interactive.setup: is blank; give a command for the shell"),
    (job(role(command=()), interactive=Interactive(), tty=True, stdin=True), "tty: needs a command beside it: without"),
    (job(restarts=RestartPolicy(limit=5000)), "restarts.limit: must be at most 1000, not 5000"),
    (job(restarts=RestartPolicy(limit=1, backoff=timedelta())), "restarts.backoff: must be above zero"),
)
