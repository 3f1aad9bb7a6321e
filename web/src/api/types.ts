// Printed from the routes of the console by `make docs`; do not edit.

/** A part of a list; `next` leads to the part after it, and is empty after the last one. */
export interface Listed<T> {
  items: T[];
  next: string;
}

/** What an account may do in a project; each may do what those before it may. */
export type Access = "viewer" | "member" | "operator" | "admin";

/** Somebody whom the coordinator knows by a token. */
export interface Account {
  name: string;
  kind: AccountKind;
  created_at: string;
  grants: Record<string, Access>;
  identity: string;
}

/** What is behind an account. */
export type AccountKind = "user" | "service" | "console";

/** What came of it with one job. */
export interface ActionOutcome {
  job: string;
  done: boolean;
  problem: Record<string, unknown> | null;
}

/** Something that somebody should look at. */
export interface Alert {
  id: string;
  kind: AlertKind;
  severity: EventSeverity;
  subject: string;
  project: string;
  text: string;
  since: string;
  until: string | null;
}

/** What somebody should look at. */
export type AlertKind = "rank_differs" | "node_unreachable" | "gpu_broken" | "queue_old" | "coordinator_away" | "certificate_ends" | "deliveries_fail";

export type AmountBounds = [number | null, number | null, number | null];

export type Amounts = [number, number, number];

/** What the terms of departments and projects have changed. */
export interface AppliedQuotas {
  changes: string[];
  applied: boolean;
  warnings: string[];
}

/** A pool as it is now. */
export interface ArrangedPool {
  pool: Pool;
  warnings: string[];
}

/** Accounts that may attach to the executions of a project, and the kinds of attachments that are open. */
export interface AttachPermission {
  who: Attachers;
  commands: boolean;
  connections: boolean;
  files: boolean;
}

/** Accounts that may attach to the executions of a job. */
export type Attachers = "owner" | "members" | "nobody";

/** One start of the whole gang, with the times of its phases. */
export interface AttemptView {
  number: number;
  placed_at: string | null;
  checked_in_at: string | null;
  released_at: string | null;
  started_at: string | null;
  saved_at: string | null;
  ended_at: string | null;
  failure: Failure | null;
  executions: ExecutionView[];
  executions_dropped: boolean;
}

/** Somebody did something, or was refused. */
export interface AuditEntry {
  at: string;
  who: string;
  what: string;
  target: string;
  origin: string;
  result: string;
  number: number;
  previous: string;
  hash: string;
}

/** An execution that the others wait for. */
export interface Awaited {
  rank: number;
  node: string | null;
  state: State;
  detail: string;
}

/** One quantity over the ranks of an attempt, in columns. */
export interface BandSeries {
  quantity: Quantity;
  attempt: number;
  times: string[];
  least: number[];
  least_ranks: number[];
  median: number[];
  most: number[];
  most_ranks: number[];
}

/** The labels that tokens and operators have given a node. */
export interface ChangedLabels {
  labels: Record<string, string>;
  changed: boolean;
}

/** Why a rank of the newest attempt cannot store its newest checkpoint. */
export interface CheckpointTrouble {
  rank: number;
  why: string;
}

/** One checkpoint of a job as people see it. */
export interface CheckpointView {
  attempt: number;
  name: string;
  at: string;
  files: number;
  bytes: number;
  parts: number;
  needed: number;
  lacking: number[];
  spoiled: number[];
  pinned: boolean;
  bad: boolean;
  restored: boolean;
}

/** What has become of one image that was to go. */
export type ClearOutcome = "removed" | "shared" | "in_use" | "unknown" | "failed" | "later";

/** An event with the attributes that CloudEvents have. */
export interface CloudEvent {
  specversion: string;
  id: string;
  source: string;
  type: string;
  subject: string;
  time: string;
  datacontenttype: string;
  data: Record<string, unknown>;
}

/** An operator wants nothing new placed on a node. */
export interface Cordon {
  since: string;
  reason: string;
}

/** How one try to deliver an event has ended. */
export interface DeliveryTry {
  event: string;
  at: string;
  taken: boolean;
  told: string;
  status: number;
  /** Seconds. */
  took: number;
}

/** What can be unlike. */
export type DifferenceKind = "usage" | "metric" | "behind" | "silent";

/** How much an event matters to somebody who does not look all the time; each more than those before it. */
export type EventSeverity = "info" | "warning" | "critical";

/** The outputs of one execution, which are one content tree. */
export interface ExecutionOutputs {
  stage: OutputsStage;
  tree: string;
  size: number;
  files: number;
  bytes: number;
  left_out: number;
  why: string;
  at: string | null;
  retries: number;
}

/** What an execution used; None: not known. */
export interface ExecutionUse {
  cpus: number | null;
  cpus_most: number | null;
  memory: number | null;
  read_rate: number | null;
  write_rate: number | null;
  processes: number | null;
}

/** One worker of an attempt. */
export interface ExecutionView {
  id: string;
  rank: number;
  role: string;
  state: State;
  node: string | null;
  gpus: string[];
  detail: string;
  address: string | null;
  ports: PortLease[];
  failure: Failure | null;
  exit: Exit | null;
  transitions: Transition[];
  log_complete: boolean;
  outputs: ExecutionOutputs | null;
}

/** How user code ended; an exit once reported never changes. */
export interface Exit {
  code: number;
  out_of_memory: boolean;
}

/** Some exit codes, as ranges: `1,3-5`. */
export interface ExitCodes {
  ranges: [number, number][];
}

/** Why a job is where it is. */
export interface Explanation {
  summary: string;
  phase: JobPhase;
  queue_position: number;
  refusals: NodeRefusal[];
  awaited: Awaited[];
  failure: Failure | null;
  reasons: WaitReason[];
  pools: PoolRefusal[];
  changes: HelpfulChange[];
  estimate: StartEstimate;
}

/** The culprit: which execution, where, and why. */
export interface Failure {
  kind: FailureKind;
  message: string;
  rank: number | null;
  node: string | null;
  exit: Exit | null;
  log_tail: string[];
}

/** What went wrong; the first group is the user's code or request, the second the infrastructure. */
export type FailureKind = "exit_code" | "signal" | "out_of_memory" | "command_not_found" | "time_limit" | "invalid_option" | "too_large" | "setup" | "queue_timeout" | "volume_full" | "gpu_memory" | "data_refused" | "image" | "port_taken" | "disk_full" | "data" | "checkpoint" | "gpu" | "runtime" | "check_in_timeout" | "agent_restarted" | "node_lost" | "drained" | "preempted" | "suspended";

/** Something happened to the fleet. */
export interface FleetEvent {
  kind: FleetEventKind;
  at: string;
  project: string;
  text: string;
  by: string;
  cause: string;
  number: number;
}

/** What can happen to the whole fleet; its CloudEvents type is `muster.fleet.` and this word. */
export type FleetEventKind = "coordinator_started" | "restored" | "authority_rotating" | "authority_rotated" | "depot_swept" | "project_added" | "project_changed" | "project_removed" | "window_set" | "window_removed" | "window_ended" | "pool_set" | "pool_removed" | "delivery_failing" | "quota_reached" | "coordinator_away" | "coordinator_back";

/** What the name of an image was found to mean, which counts for all ranks and attempts of a job. */
export interface FoundImage {
  image: string;
  digest: string;
  id: string;
}

/** One GPU; what the driver does not tell is None. */
export interface Gpu {
  uuid: string;
  index: number;
  model: string;
  memory: number;
  compute_capability: string | null;
  pci_bus_id: string | null;
  numa_node: number | null;
  nvlink_peers: string[];
  mig_enabled: boolean | null;
  mig: string | null;
  problems: string[];
  processes: GpuProcess[];
}

/** A process that has a context on a GPU (host pid). */
export interface GpuProcess {
  pid: number;
  memory: number | null;
}

/** What an execution has of one GPU. */
export interface GpuShare {
  thousandths: number;
  memory: number;
}

/** What is seen of a GPU; None: its driver does not tell. */
export interface GpuUse {
  busy: number | null;
  busy_most: number | null;
  memory: number | null;
  watts: number | null;
  celsius: number | null;
  clock_mhz: number | null;
  throttled: boolean;
}

/** What would have a queued job placed now, if it had been submitted like that. */
export interface HelpfulChange {
  change: string;
  why: string;
}

/** What a node used as a whole; None: not known. */
export interface HostUse {
  cpus: number;
  memory: number;
  memory_total: number;
  read_rate: number | null;
  write_rate: number | null;
  receive_rate: number | null;
  send_rate: number | null;
  stalled: [number | null, number | null, number | null];
}

/** What has become of one image that was to go. */
export interface ImageFate {
  image: string;
  outcome: ClearOutcome;
  bytes: number;
  why: string;
}

/** An image that the agent of a node has pulled, as people see it. */
export interface ImageView {
  node: string;
  id: string;
  names: string[];
  bytes: number;
  used_at: string;
  jobs: string[];
  connected: boolean;
}

/** What a node has. */
export interface Inventory {
  cpus: number;
  memory: number;
  disk_total: number;
  disk_free: number;
  kernel: string;
  os: string;
  architecture: string;
  addresses: string[];
  gpus: Gpu[];
  gpu_driver: string | null;
  cuda: string | null;
  gpu_problem: string | null;
  runtimes: RuntimeOffer[];
  labels: Record<string, string>;
}

/** What is known of a join token; its secret is not. */
export interface IssuedJoinToken {
  id: string;
  created_by: string;
  created_at: string;
  expires_at: string;
  uses_left: number;
  labels: Record<string, string>;
  revoked_at: string | null;
}

/** What is known of an API token; its secret is not. */
export interface IssuedToken {
  id: string;
  account: string;
  note: string;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  access: Access | null;
  projects: string[];
  used_at: string | null;
}

/** What a job has saved. */
export interface JobCheckpoints {
  job: string;
  job_name: string;
  checkpoints: CheckpointView[];
  troubles: CheckpointTrouble[];
}

/** How surely a job keeps what it gets. */
export type JobClass = "guaranteed" | "preemptible" | "spare";

/** A rank of a job that is, or was, unlike the others of its role. */
export interface JobDifference {
  attempt: number;
  rank: number;
  node: string | null;
  kind: DifferenceKind;
  what: string;
  since: string;
  until: string | null;
  text: string;
}

/** Something happened to a job. */
export interface JobEvent {
  job: string;
  attempt: number;
  kind: JobEventKind;
  at: string;
  text: string;
  rank: number | null;
  ranks: string;
  nodes: string[];
  by: string;
  cause: string;
  number: number;
}

/** What can happen to a job; its CloudEvents type is `muster.job.` and this word. */
export type JobEventKind = "submitted" | "waiting" | "queued" | "changed" | "no_room" | "claimed" | "placed" | "preparing" | "checked_in" | "released" | "running" | "gpu_memory" | "rank_differs" | "idle" | "restoring" | "checkpointed" | "checkpoint_bad" | "exited" | "stopping" | "outputs_stored" | "outputs_lost" | "attempt_failed" | "succeeded" | "failed" | "stopped" | "deleted";

/** A job: executions that start together or not at all. */
export interface JobFile {
  /** Container image. Without it the command runs as a plain process. */
  image?: string;
  /** When it is pulled, see docs/images.md. Needs `image`. */
  pull?: "always" | "missing" | "never";
  /** Replaces the image's entrypoint; an empty list takes it away. Needs `image`. */
  entrypoint?: (string | number | boolean)[];
  /** Program and arguments; a text is run by `/bin/sh -c`. Without it the image's own command runs. */
  command?: string | [string | number | boolean];
  /** Environment variables. Values are taken as they are written: `NO: no` is the text `no`. */
  env?: Record<string, unknown>;
  /** Working directory (default: the image's; a fresh directory for a process). */
  workdir?: string;
  /** Who runs in the container (default: the node's user for jobs). Root, and names of the image's own users, only where the project is opened for any user. Needs `image`. */
  user?: string | number;
  /** What containers may do beyond the default, see below. All but `pids` needs `image`. */
  security?: JobFileSecurityKeys;
  /** What each execution reserves, see below. */
  resources?: JobFileResourcesKeys;
  /** Ports that each execution gets, see below. */
  ports?: (string | JobFilePortKeys)[];
  /** What of the node the container sees, see below. Needs `image`. */
  mounts?: (string | JobFileMountKeys)[];
  /** Directories that each execution finds beside the image, see below. */
  volumes?: Record<string, unknown>;
  /** Files from elsewhere that each execution finds, see below. */
  inputs?: Record<string, unknown>;
  /** Resource limits such as `memlock` and `nofile`, see below. Needs `image`. */
  ulimits?: Record<string, number | "unlimited" | JobFileUlimitKeys>;
  /** Small files written before user code starts, 1 MiB in all, and 32 MiB for all executions that can share a node, see below. */
  files?: JobFileFileKeys[];
  /** Secrets of the project that each execution gets, as files or variables, see below. */
  secrets?: (string | JobFileSecretKeys)[];
  /** A folder, or a commit of a Git repository, of which each execution gets a copy as its working directory, see below. */
  code?: string | JobFileCodeKeys;
  /** Which outputs are stored, and for how long, see below (default: all). */
  outputs?: JobFileOutputsKeys;
  /** What each execution saves for the next attempt, see below. */
  checkpoint?: JobFileCheckpointKeys;
  /** Which exit codes end the job or restart the gang, see below. */
  exit_codes?: JobFileExitCodesKeys;
  /** Whether `{{muster:rank}}` and the like are replaced, see docs/roster.md. */
  expand?: boolean;
  /** Lower-case letters, digits and hyphens; need not be unique. */
  name: string;
  /** How many executions of a job without `roles`. */
  workers?: number;
  /** Parts that differ, in rank order, see below. Not together with `workers`. */
  roles?: JobFileRoleKeys[];
  /** `host`: the node's own network. `bridge`: a private network per container, declared ports are published. */
  network?: "host" | "bridge";
  /** Who must end well: every execution, rank 0, or those of a role. Once rank 0 or the role has, the others are stopped (default: `all`, or what the framework fills in). */
  success?: string;
  /** The project of the job, which says who may see it (default: that of `MUSTER_PROJECT`, else the caller's only project, else `default`). */
  project?: string;
  /** What user code is written for, so that it finds its peers as it is, see below and docs/frameworks.md. */
  framework?: "pytorch" | "tensorflow" | "jax" | "xgboost" | "lightgbm" | "deepspeed" | "mpi" | "horovod" | "ray" | JobFileFrameworkKeys;
  /** Other systems whose variables and files user code finds as well, see docs/dialects.md. */
  dialects?: ("slurm" | "valohai" | "runai" | "skypilot")[];
  /** Whether user code may run commands in the other executions (default: where the framework needs it). */
  gang_commands?: boolean;
  /** A job in which people work: without `command` its main program waits until the job is stopped, see below and docs/development-environments.md. */
  interactive?: boolean | JobFileInteractiveKeys;
  /** Whether the main program of rank 0 reads what people who attach to it send; see docs/interactive.md. */
  stdin?: boolean;
  /** Whether the main program of rank 0 has a terminal; then it has `stdin` as well. See docs/interactive.md. */
  tty?: boolean;
  /** Text by which people find the job: `muster jobs --label paper=icml`. Nothing is placed by it. */
  labels?: Record<string, unknown>;
  /** Higher goes first. */
  priority?: number;
  /** `guaranteed`: only within the quota of its project. `preemptible`: also beyond it. `spare`: only what nobody else wants. Default: that of its project, see docs/sharing.md. */
  class?: "guaranteed" | "preemptible" | "spare";
  /** Whether the job waits until `muster unhold` releases it, see docs/waiting.md. */
  hold?: boolean;
  /** The job waits until this time (default: it may begin at once). */
  not_before?: string;
  /** How long after its end the job is deleted with its logs (default: somebody deletes it). */
  delete_after?: number | string;
  /** On as few nodes as possible, or on as many. */
  placement?: "pack" | "spread";
  /** At most so many executions of this job on one node. */
  max_per_node?: number;
  /** Only nodes that carry all of these labels; what agents say themselves begins with `local/`. */
  node_labels?: Record<string, unknown>;
  /** The pools in which it is placed, in this order: it goes to the first that has room for all of it. No gang lies in two pools. See below and docs/pools.md (default: any pool). */
  pools?: (string | JobFilePoolKeys)[];
  /** Only nodes whose label `type` has one of these values (default: any). */
  node_type?: string | number | boolean | (string | number | boolean)[];
  /** Nodes on which it is not placed. */
  exclude_nodes?: (string | number | boolean)[];
  /** Taints of nodes that it puts up with, see below and docs/taints.md. */
  tolerations?: JobFileTolerationKeys[];
  /** Nodes that it needs or would rather have, by operators on their labels, see below. */
  affinity?: JobFileAffinityKeys;
  /** How close to each other its nodes are to be, see below. */
  topology?: JobFileTopologyKeys;
  /** Whether it has its nodes for itself: it goes only to nodes on which nothing runs, and then nothing else does. */
  exclusive?: boolean;
  /** Limits in time, see below. */
  timeouts?: JobFileTimeoutsKeys;
  /** What follows a failure, see below (default: nothing). */
  restarts?: JobFileRestartsKeys;
  /** What happens when it is preempted, see below and docs/preemption.md. */
  on_preempt?: JobFileOnPreemptKeys;
  /** What a node does that does not hear of the coordinator any more: `keep`: user code goes on, unless the other nodes of the gang show that only this one is cut off. `stop`: it is stopped. See docs/fencing.md. */
  on_disconnect?: "keep" | "stop";
}

/** Nodes that the job needs, or would rather have, see docs/pools.md. */
export interface JobFileAffinityKeys {
  /** Only nodes for which all expressions of one of these lists hold, see below. */
  required?: JobFileLabelExpressionKeys[][];
  /** Nodes that are filled first, see below: those that cost least. */
  preferred?: JobFilePreferredTermKeys[];
}

/** What executions save for the next attempt, see docs/checkpoints.md. */
export interface JobFileCheckpointKeys {
  /** Where the container saves it (default: `/muster/checkpoint`). Needs `image`. */
  path?: string;
  /** Ranks whose part a whole checkpoint needs: each execution of the role (default), or its first one, whose part all of them find. */
  ranks?: "all" | "rank0";
  /** A checkpoint is whole once it has such a file (default: none says so). */
  done?: string;
  /** A checkpoint that nothing else says is whole counts once it has not changed for so long (default: 1m). */
  settle?: number | string;
  /** How many whole checkpoints stay, the newest. */
  keep?: number;
}

/** A folder that is sent at the submit, a commit of a repository, or what the depot has; short: the folder. */
export interface JobFileCodeKeys {
  /** A folder where the job is submitted from, relative to the job file. */
  folder?: string | number | boolean;
  /** A Git repository, with `https://` or `ssh://`, of which all executions get the same commit. */
  git?: string;
  /** The branch, tag or whole commit (default: the HEAD of the repository). Needs `git`. */
  ref?: string;
  /** The commit that counts, whatever `ref` says; `muster show -o yaml` prints the one that was found. Needs `git`. */
  commit?: string;
  /** The directory of the repository that is wanted (default: all). Needs `git`. */
  path?: string;
  /** The secret of kind `git` that opens the repository (`muster secrets list`); `ssh://` needs one. Needs `git`. */
  secret?: string;
  /** Whether the repositories that it names as its submodules come along, at the commits that it names. Needs `git`. */
  submodules?: boolean;
  /** Whether large files come along, for which small files of Git LFS stand in the repository; up to 256 MiB in all, over `https://`. Needs `git`. */
  lfs?: boolean;
  /** The tree of a folder that was sent, as `muster upload` prints it. */
  tree?: string | number | boolean;
  /** The `size` that `muster upload -o json` prints. Needs `tree`. */
  size?: number;
  /** Whether each execution has a copy to which it may write. `false`: all of a node share one directory, which they can only read. */
  writable?: boolean;
}

/** What exit codes of user code mean when the gang could start again; `fail` wins over `restart`. */
export interface JobFileExitCodesKeys {
  /** Only these are worth another attempt (default: all). */
  restart?: string | number;
  /** These end the job, however many restarts are left. */
  fail?: string | number;
}

/** A small file that is written before user code starts; exactly one of the contents. */
export interface JobFileFileKeys {
  /** Absolute, or relative to the working directory. */
  path: string;
  /** What is in it. */
  content?: string;
  /** What is in it, for files that are not text. */
  content_base64?: string;
  /** A file where the job is submitted from, relative to the job file. */
  source?: string | number | boolean;
  /** Whether it can be run. */
  executable?: boolean;
}

/** What user code is written for, so that it finds its peers as it is; short: its name. See docs/frameworks.md. */
export interface JobFileFrameworkKeys {
  /** The framework. */
  name: "pytorch" | "tensorflow" | "jax" | "xgboost" | "lightgbm" | "deepspeed" | "mpi" | "horovod" | "ray";
  /** Processes that user code has in each execution. `gpu`: one for each GPU (default: that with pytorch, deepspeed, mpi and horovod, else 1). */
  processes?: "gpu" | number;
  /** Where the command runs: on rank 0, which starts the processes of all, or in every execution. Only deepspeed can do both (default: `rank0` with deepspeed, mpi, horovod and ray, else `all`). */
  launch?: "rank0" | "all";
  /** With pytorch: how the launchers find each other. Restarts in place need `c10d`. */
  rendezvous?: "static" | "c10d";
  /** With pytorch: how often torchrun starts its processes again before the execution fails. */
  restarts_in_place?: number;
}

/** A file, objects of a store, or outputs of a job, see docs/inputs.md; short: its URL. */
export interface JobFileInputKeys {
  /** Where the file comes from, with `http://` or `https://`; or objects of a store as `s3://BUCKET/KEY` or `az://CONTAINER/NAME`, where `*`, `?` and `**` are wildcards and a `/` at the end means all below. Placeholders like `{{muster:rank}}` are replaced. */
  url?: string;
  /** The secret that opens the store or the server (`muster secrets list`): of kind `s3` for `s3://`, of kind `azure` for `az://`, of kind `http` for others. Without one all is read as everybody may. */
  secret?: string;
  /** The job whose outputs it is, by `job:ID`, or else the newest of that name that has succeeded; the N-th execution of a role, from 0, or all of them, each in a directory of its own. */
  from?: string;
  /** Of these outputs, like `** /*.pt`; without it all of them. Needs `from`. */
  only?: string[];
  /** The directory in which the container has it (default: `/muster/inputs/NAME`). Needs `image`. */
  path?: string;
  /** What `sha256sum` prints of the file; the job fails where it holds something else. */
  sha256?: string;
  /** Each execution of the role gets a part of the files: of N executions, the one in place P has the files in places P, P+N, P+2N and so on, in the order of their paths. Needs wildcards, a `/` at the end, or `from`. */
  split?: boolean;
  /** Where objects lie in the directory: by what stands behind the part of the name without wildcards, by the whole name, or by the last part of it. `full` and `flat` need `s3://` or `az://`. */
  layout?: "tail" | "full" | "flat";
}

/** What a job has in which people work; short: `true`. */
export interface JobFileInteractiveKeys {
  /** A command for `/bin/sh -c`, run once in each execution before its main program. What it prints is in the log; if it fails, so does the job. */
  setup?: string | number | boolean;
}

/** What one label of a node must be like. */
export interface JobFileLabelExpressionKeys {
  /** Name of the label. */
  key: string;
  /** `In`: it has one of the `values`. `NotIn`: it has none of them, or is not there. `Gt`, `Lt`: it is a whole number above or below the value. */
  operator?: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
  /** With `In` and `NotIn`: the values. With `Gt` and `Lt`: one whole number. */
  values?: string | number | boolean | (string | number | boolean)[];
}

/** A directory or file of the node, seen in the container; short: `/source:/target[:rw|ro]`. */
export interface JobFileMountKeys {
  /** On the node. */
  source: string;
  /** In the container. */
  target: string;
  /** Whether the container may only read it. */
  read_only?: boolean;
}

/** What happens when the job is preempted, suspended, or moved off a node that is drained. */
export interface JobFileOnPreemptKeys {
  /** What every rank gets when the grace begins. */
  signal?: "HUP" | "INT" | "QUIT" | "TERM" | "USR1" | "USR2";
  /** Whether it waits for its next start after it was preempted; otherwise it ends as stopped. */
  restart?: boolean;
}

/** Which outputs of an execution are stored, and for how long, see docs/outputs.md. */
export interface JobFileOutputsKeys {
  /** The ends of user code after which its outputs are stored: `success`, only where the execution has succeeded. Others go with it. */
  on?: "always" | "success";
  /** Of the outputs, like `** /*.pt` (default: all). Others go with it. */
  only?: string[];
  /** Most that one execution may leave; more is not stored (default: what its project may keep). */
  limit?: number | string;
  /** How long they stay once they are stored; at most `delete_after` (default: as long as the job). */
  keep?: number | string;
  /** The place in a store below which they go, as `NAME-JOB/ATTEMPT/RANK/PATH` (default: the fleet's depot). Needs `secret`. */
  to?: string;
  /** The secret of kind `s3` or `azure` that opens that store. */
  secret?: string;
  /** Which are stored while user code runs: `read-only`, files that nobody may write to any more (default: `off`; with the dialect `valohai` `read-only`). Not beside `on: success`. */
  live?: "off" | "read-only" | "settled";
}

/** A pool in which the job is placed; short: its name. */
export interface JobFilePoolKeys {
  /** Its name. */
  pool: string;
  /** How long the job has waited in the queue before it goes there (default: it goes there at once). */
  after?: number | string;
}

/** A named port of each execution; a bare name leaves the number to the agent. */
export interface JobFilePortKeys {
  /** Unique in the role; `master` names rank 0's `MASTER_PORT`. */
  name: string;
  /** Fixed number: of the node on host networking, where one execution has it; of the container on bridge networking. A fixed `master` is for rank 0 alone. Without a number the agent chooses one. */
  port?: number;
}

/** Nodes that the job would rather have. */
export interface JobFilePreferredTermKeys {
  /** What a node costs more for which not all expressions hold. */
  weight?: number;
  /** Expressions, see below. */
  all: JobFileLabelExpressionKeys[];
}

/** What each execution reserves on its node. */
export interface JobFileResourcesKeys {
  /** GPUs; with `mig`, `gpu_portion` or `gpu_memory` of how many (default there: 1). */
  gpus?: number;
  /** Part of the model name that every GPU must have, whatever the case: `H100`. */
  gpu_model?: string | number | boolean;
  /** It gets MIG devices of this profile in place of whole GPUs. */
  mig?: string;
  /** It gets this part of each of its GPUs. */
  gpu_portion?: number;
  /** It gets so much memory of each of its GPUs. */
  gpu_memory?: number | string;
  /** CPUs. */
  cpus?: number | string;
  /** Main memory that is reserved on the node. Without it nothing is. */
  memory?: number | string;
  /** Disk that must be free on its node, see docs/scheduling.md. */
  disk?: number | string;
  /** Size of `/dev/shm` in the container (default: the runtime's). */
  shm?: number | string;
  /** CPUs that it gets at most (default: `none`: beside what is reserved, as many as nobody else uses). */
  cpu_limit?: "none" | number | string;
  /** Main memory that it may use at most; what goes beyond is killed (default: the value of `memory`). */
  memory_limit?: "none" | number | string;
}

/** When the whole gang starts again as a new attempt after a failure. */
export interface JobFileRestartsKeys {
  /** How often after failures of user code. */
  limit?: number;
  /** How often after failures that are not the code's: lost nodes, daemons, images, ports, GPUs. */
  infrastructure?: number;
  /** Pause before the second restart, doubled before each one after it; the first comes at once. */
  backoff?: number | string;
}

/** A named part of a job: `count` identical executions. */
export interface JobFileRoleKeys {
  /** Container image. Without it the command runs as a plain process. */
  image?: string;
  /** When it is pulled, see docs/images.md. Needs `image`. */
  pull?: "always" | "missing" | "never";
  /** Replaces the image's entrypoint; an empty list takes it away. Needs `image`. */
  entrypoint?: (string | number | boolean)[];
  /** Program and arguments; a text is run by `/bin/sh -c`. Without it the image's own command runs. */
  command?: string | [string | number | boolean];
  /** Environment variables. Values are taken as they are written: `NO: no` is the text `no`. */
  env?: Record<string, unknown>;
  /** Working directory (default: the image's; a fresh directory for a process). */
  workdir?: string;
  /** Who runs in the container (default: the node's user for jobs). Root, and names of the image's own users, only where the project is opened for any user. Needs `image`. */
  user?: string | number;
  /** What containers may do beyond the default, see below. All but `pids` needs `image`. */
  security?: JobFileSecurityKeys;
  /** What each execution reserves, see below. */
  resources?: JobFileResourcesKeys;
  /** Ports that each execution gets, see below. */
  ports?: (string | JobFilePortKeys)[];
  /** What of the node the container sees, see below. Needs `image`. */
  mounts?: (string | JobFileMountKeys)[];
  /** Directories that each execution finds beside the image, see below. */
  volumes?: Record<string, unknown>;
  /** Files from elsewhere that each execution finds, see below. */
  inputs?: Record<string, unknown>;
  /** Resource limits such as `memlock` and `nofile`, see below. Needs `image`. */
  ulimits?: Record<string, number | "unlimited" | JobFileUlimitKeys>;
  /** Small files written before user code starts, 1 MiB in all, and 32 MiB for all executions that can share a node, see below. */
  files?: JobFileFileKeys[];
  /** Secrets of the project that each execution gets, as files or variables, see below. */
  secrets?: (string | JobFileSecretKeys)[];
  /** A folder, or a commit of a Git repository, of which each execution gets a copy as its working directory, see below. */
  code?: string | JobFileCodeKeys;
  /** Which outputs are stored, and for how long, see below (default: all). */
  outputs?: JobFileOutputsKeys;
  /** What each execution saves for the next attempt, see below. */
  checkpoint?: JobFileCheckpointKeys;
  /** Which exit codes end the job or restart the gang, see below. */
  exit_codes?: JobFileExitCodesKeys;
  /** Whether `{{muster:rank}}` and the like are replaced, see docs/roster.md. */
  expand?: boolean;
  /** Unique in the job; executions are reached as `name-0`, `name-1`, …. */
  name: string;
  /** How many executions. */
  count?: number;
}

/** A secret of the job's project that each execution gets; short: its name, for files below `/muster/secrets`. */
export interface JobFileSecretKeys {
  /** Its name in the project (`muster secrets list`). */
  secret: string;
  /** Variables that hold its values. One name is enough for a secret with one key; `true` sets what is usual for its kind, see docs/secrets.md. */
  env?: true | string | Record<string, string>;
  /** Where a file for each key lies, in memory (without `env`: `/muster/secrets/SECRET`). A plain process finds that directory by `MUSTER_SECRETS_DIR`, and has no other. */
  directory?: string;
}

/** What containers may do beyond the default; the project must be opened for it, see docs/containers.md. */
export interface JobFileSecurityKeys {
  /** Beside the default ones; they count for root in the container only. */
  capabilities?: ("AUDIT_CONTROL" | "AUDIT_READ" | "AUDIT_WRITE" | "BLOCK_SUSPEND" | "BPF" | "CHECKPOINT_RESTORE" | "CHOWN" | "DAC_OVERRIDE" | "DAC_READ_SEARCH" | "FOWNER" | "FSETID" | "IPC_LOCK" | "IPC_OWNER" | "KILL" | "LEASE" | "LINUX_IMMUTABLE" | "MAC_ADMIN" | "MAC_OVERRIDE" | "MKNOD" | "NET_ADMIN" | "NET_BIND_SERVICE" | "NET_BROADCAST" | "NET_RAW" | "PERFMON" | "SETFCAP" | "SETGID" | "SETPCAP" | "SETUID" | "SYSLOG" | "SYS_ADMIN" | "SYS_BOOT" | "SYS_CHROOT" | "SYS_MODULE" | "SYS_NICE" | "SYS_PACCT" | "SYS_PTRACE" | "SYS_RAWIO" | "SYS_RESOURCE" | "SYS_TIME" | "SYS_TTY_CONFIG" | "WAKE_ALARM")[];
  /** Everything that root of the node may. */
  privileged?: boolean;
  /** Whether programs may gain privileges, as `sudo` does. */
  gain_privileges?: boolean;
  /** As the user that the image names, root as a rule; otherwise as the node's user for jobs. Not beside `user`. */
  image_user?: boolean;
  /** At most so many processes and threads (default: 32768). */
  pids?: number;
}

/** The limits in time of one attempt. */
export interface JobFileTimeoutsKeys {
  /** From placement until every execution is armed; does not slide. */
  check_in?: number | string;
  /** Between SIGTERM and SIGKILL. */
  grace?: number | string;
  /** How long the inputs of an execution may take; `check_in` comes on top. */
  fetch?: number | string;
  /** How long an input may go without a byte. */
  stall?: number | string;
  /** How long outputs may take to the depot, after user code has ended. */
  store?: number | string;
  /** Longest time that user code may run (default: no limit). */
  run?: number | string;
  /** Longest time of each attempt in the queue; what it waits outside does not count (default: no limit). */
  queue?: number | string;
  /** How long user code will run: a hint for estimates, at most `run` (default: not known). */
  expected?: number | string;
  /** How long a node may be silent before what it runs is lost; see docs/fencing.md. */
  lost_after?: number | string;
  /** Between notice and SIGKILL where the job comes back after the stop: preempted, suspended, its node drained (default: the larger of `grace` and 30s); never more than 5m, whatever it says. See docs/preemption.md. */
  preempt?: number | string;
  /** How long the job may go unused before it is stopped (default: 2h if it is interactive, else what its project says, else `none`); see docs/development-environments.md. */
  idle?: "none" | number | string;
}

/** Taints of nodes that the job puts up with. */
export interface JobFileTolerationKeys {
  /** Key of the taints (default: with `operator: Exists` any). */
  key?: string;
  /** `Equal`: the taint has this `value`. `Exists`: it may have any. */
  operator?: "Equal" | "Exists";
  /** Value of the taints (default: empty). */
  value?: string | number | boolean;
  /** Effect of the taints (default: any). */
  effect?: "NoSchedule" | "PreferNoSchedule" | "NoExecute";
  /** With `NoExecute`: how much longer the job stays where it runs already when the taint comes. It is not placed there again (default: for ever, and it is placed there). */
  seconds?: number;
}

/** How close to each other the nodes of the job are to be, see docs/topology.md. */
export interface JobFileTopologyKeys {
  /** All its nodes have the same value of this label (default: they may be anywhere). */
  required?: string;
  /** They have as few values of this label as can be (default: with GPUs and `placement: pack`, of the finest). */
  preferred?: string;
}

/** A resource limit of the container; short: one value for both. */
export interface JobFileUlimitKeys {
  /** What programs start with. */
  soft: number | "unlimited";
  /** How far programs may raise it. */
  hard: number | "unlimited";
}

/** A directory that each execution finds, see docs/volumes.md; exactly one of `size` and `tmpfs`. */
export interface JobFileVolumeKeys {
  /** Where the container has it (default: `/muster/volumes/NAME`). A plain process finds it by its variable `MUSTER_VOLUME_NAME` alone. */
  path?: string;
  /** A directory on the node's disk, and how much may lie in it. */
  size?: number | string;
  /** A directory in memory, and how much may lie in it; it counts as memory of the execution. Needs `image`. */
  tmpfs?: number | string;
  /** How long what lies in it is kept: it goes with the execution, or stays on the node for all jobs of the project that have a volume of this name. The second needs `size`. */
  keep?: "execution" | "node";
  /** Whether user code may write to it. `false` needs `keep: node` and `image`. */
  writable?: boolean;
}

/** The outputs of one attempt of a job. */
export interface JobOutputs {
  job: string;
  job_name: string;
  attempt: number;
  size: number;
  depot: string;
  ranks: RankOutputs[];
}

/** How a job is doing, derived from its executions; never stored. */
export type JobPhase = "waiting" | "queued" | "preparing" | "running" | "stopping" | "storing" | "succeeded" | "failed" | "stopped";

/** The rules of a fleet or of one project; jobs keep both, so a project only narrows what its fleet allows. */
export interface JobPolicy {
  project: string;
  rules: Record<string, PolicyRule>;
  updated_at: string | null;
  updated_by: string;
}

export type JobSpec = JobFile;

/** A job. */
export interface JobView {
  id: string;
  spec: JobSpec;
  phase: JobPhase;
  summary: string;
  submitted_at: string;
  owner: string;
  sequence: number;
  started_at: string | null;
  ended_at: string | null;
  attempts: AttemptView[];
  states: Record<string, number>;
  failure: Failure | null;
  reasons: WaitReason[];
  images: FoundImage[];
}

/** A volume that a node keeps, as people see it. */
export interface KeptVolumeView {
  node: string;
  project: string;
  name: string;
  bytes: number;
  used_at: string;
  jobs: string[];
  connected: boolean;
}

/** What one label of a node must be like. */
export interface LabelExpression {
  key: string;
  operator: LabelOperator;
  values: string[];
}

/** How a label of a node is compared with the values of an expression. */
export type LabelOperator = "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";

/** A piece of output of one rank. */
export interface LogLine {
  rank: number;
  stream: string;
  time: string;
  text: string | { base64: string; };
  partial: boolean;
  attempt: number;
}

/** A join token with its secret, which is shown this once. */
export interface MadeJoinToken {
  secret: string;
  token: IssuedJoinToken;
}

/** An API token with its secret, which is shown this once. */
export interface MadeToken {
  secret: string;
  token: IssuedToken;
}

/** What the caller is to the coordinator. */
export interface Myself {
  name: string;
  kind: string;
  grants: Record<string, Access>;
  token: string;
  expires_at: string | null;
  identity: string;
}

/** Something happened to a node. */
export interface NodeEvent {
  node: string;
  kind: NodeEventKind;
  at: string;
  text: string;
  by: string;
  cause: string;
  number: number;
}

/** What can happen to a node; its CloudEvents type is `muster.node.` and this word. */
export type NodeEventKind = "joined" | "unreachable" | "back" | "lost" | "cordoned" | "draining" | "drained" | "uncordoned" | "tainted" | "inventory_changed" | "gpu_fault" | "gpu_back" | "removed";

/** The pull of an image on one node, as people see it. */
export interface NodePull {
  node: string;
  step: PullStep;
  doing: string;
  why: string;
  id: string;
  digest: string;
  bytes: number;
}

/** Why one node cannot take an execution now. */
export interface NodeRefusal {
  node: string;
  reason: string;
}

/** How far the coordinator believes in a node. */
export type NodeState = "ready" | "unreachable" | "lost";

/** A taint as a node has it. */
export interface NodeTaint {
  taint: Taint;
  since: string;
  /** Seconds. */
  after: number;
}

/** A node and what of it is given away. */
export interface NodeView {
  name: string;
  state: NodeState;
  address: string;
  inventory: Inventory;
  executions: string[];
  gpus_taken: string[];
  gpus_shared: Record<string, GpuShare>;
  cpu_millis_taken: number;
  memory_taken: number;
  agent_version: string;
  last_seen_at: string | null;
  joined_at: string | null;
  cordon: Cordon | null;
  taints: NodeTaint[];
  pool: string;
}

/** What came of asking for the outputs of an attempt to be stored again. */
export interface OutputsRetry {
  job: string;
  job_name: string;
  attempt: number;
  ranks: number[];
  refused: RankNotRetried[];
}

/** Where the outputs of an execution are. */
export type OutputsStage = "live" | "storing" | "stored" | "on_node" | "lost" | "unwanted" | "expired" | "storing_again";

/** What the containers of a project may do beyond the default, and who may attach to them. */
export interface Permissions {
  capabilities: string[];
  privileged: boolean;
  gain_privileges: boolean;
  any_user: boolean;
  host_paths: string[];
  pids: number | null;
  attach?: AttachPermission;
}

/** What one line says. */
export interface Point {
  time: string;
  values: Record<string, number>;
  texts: Record<string, string>;
  offset: number;
}

/** What a job may say under one key; values are written as in a job file. */
export interface PolicyRule {
  required: boolean;
  min: string;
  max: string;
  step: string;
  options: string[];
  pattern: string;
  locked: boolean;
  edit: boolean;
  add: boolean;
}

/** A pool that somebody has set up. */
export interface Pool {
  name: string;
  selector: Record<string, string>;
  longest_run: number | null;
  levels: string[];
  enforce: PortionRule;
}

/** Why a job has no place in one pool. */
export interface PoolRefusal {
  pool: string;
  reason: string;
}

/** What a department or a project has in one pool, and what it may have there. */
export interface PoolStandingView {
  pool: string;
  quota: Amounts;
  limit: Amounts;
  weight: number;
  rank: number;
  share: Amounts;
  held: Amounts;
  guaranteed: Amounts;
  waiting: Amounts;
}

/** A pool as people are shown it: what was set, and what it has. */
export interface PoolView {
  pool: Pool;
  is_set: boolean;
  nodes: string[];
  capacity: Amounts;
  held: Amounts;
  warnings: string[];
}

/** A port of an execution, held from check-in until just before user code starts. */
export interface PortLease {
  name: string;
  host_port: number;
  container_port: number;
}

/** What becomes of an execution that uses more GPU memory than its portion. */
export type PortionRule = "tell" | "stop";

/** A tenant: whoever has no access to it does not learn of its jobs. */
export interface Project {
  name: string;
  created_at: string;
  permissions: Permissions;
  department: string;
  terms: UnitTerms;
  storage: number;
}

/** How far the pull of an image on one node is. */
export type PullStep = "waiting" | "pulling" | "pulled" | "failed";

/** The pull of an image on several nodes, as people see it. */
export interface PullView {
  id: string;
  image: string;
  revision: number;
  nodes: NodePull[];
}

/** Something that is used, and of which samples tell. */
export type Quantity = "busy" | "gpu_memory" | "watts" | "celsius" | "clock_mhz" | "cpus" | "memory" | "read_rate" | "write_rate" | "receive_rate" | "send_rate" | "processes";

/** A queued job in the order in which jobs are tried. */
export interface QueueLine {
  position: number;
  job: string;
  name: string;
  project: string;
  owner: string;
  pool: string;
  job_class: JobClass;
  priority: number;
  tier: string;
  size: Amounts;
  since: string;
  reason: string;
}

/** What a department or a project may have in a pool; None: nothing is said of it. */
export interface QuotaTerms {
  quota: AmountBounds;
  limit: AmountBounds;
  weight: number | null;
  rank: number | null;
  min_runtime: number | null;
  min_runtime_within: number | null;
  max_running: number | null;
  max_queued: number | null;
  max_running_per_user: number | null;
  job_class: JobClass | null;
  grace_max: number | null;
  idle: number | null;
  types: string[] | null;
}

/** A department or a project, as far as quotas are concerned. */
export interface QuotaUnit {
  name: string;
  kind: UnitKind;
  department: string;
  terms: UnitTerms;
}

/** A rank whose outputs cannot be stored again. */
export interface RankNotRetried {
  rank: number;
  why: string;
}

/** The outputs of one rank, and the way to them. */
export interface RankOutputs {
  rank: number;
  role: string;
  outputs: ExecutionOutputs;
  ticket: string;
  store: string;
}

/** Points of one rank in one attempt, in the order in which they were printed. */
export interface RankPoints {
  rank: number;
  attempt: number;
  points: Point[];
  all: number;
}

/** What runs an execution on its node. */
export type RuntimeKind = "docker" | "process";

/** A runtime that works on the node, or why it does not. */
export interface RuntimeOffer {
  kind: RuntimeKind;
  version: string;
  gpus: boolean;
  problem: string | null;
}

/** What a node used within a span. */
export interface Sample {
  at: string;
  /** Seconds. */
  span: number;
  host: HostUse;
  gpus: [string, GpuUse][];
  executions: [string, ExecutionUse][];
  left_out: number;
}

/** What a node used in the last seconds. */
export interface SampleOfNode {
  node: string;
  sample: Sample;
}

/** What is known of a secret; its values are not. */
export interface Secret {
  project: string;
  name: string;
  kind: SecretKind;
  keys: string[];
  created_at: string;
  updated_at: string;
  updated_by: string;
  server: string;
}

/** What a secret is for; each kind has keys that it must have. */
export type SecretKind = "generic" | "registry" | "s3" | "azure" | "http" | "git";

/** When a queued job may start. */
export interface StartEstimate {
  about: string | null;
  latest: string | null;
}

/** Where one execution stands. */
export type State = "waiting" | "queued" | "placed" | "preparing" | "checked_in" | "armed" | "running" | "stopping" | "succeeded" | "failed" | "stopped" | "lost";

/** Which events go where. Its keys are no part of it, and nobody but consoles reads them back. */
export interface Subscription {
  project: string;
  name: string;
  target: SubscriptionTarget;
  to: string[];
  events: string[];
  minimum: EventSeverity;
  jobs: string;
  owners: string[];
  labels: Record<string, string>;
  updated_at: string | null;
  updated_by: string;
  failures: number;
  last: DeliveryTry | null;
}

/** What kind of target events go to. */
export type SubscriptionTarget = "webhook" | "slack" | "mail";

/** A mark of a node; key and effect name it, so a node has one value for both. */
export interface Taint {
  key: string;
  effect: TaintEffect;
  value: string;
}

/** What a taint of a node does to jobs that do not tolerate it. */
export type TaintEffect = "NoSchedule" | "PreferNoSchedule" | "NoExecute";

/** An execution entered a state. */
export interface Transition {
  state: State;
  at: string;
}

/** What a quota unit is. */
export type UnitKind = "department" | "project";

/** A department or a project with its terms, its jobs, and what it has in each pool. */
export interface UnitStandingView {
  unit: QuotaUnit;
  running: number;
  queued: number;
  pools: PoolStandingView[];
}

/** The terms of a department or a project: those for all pools, and what differs in some. */
export interface UnitTerms {
  everywhere: QuotaTerms;
  pools: Record<string, QuotaTerms>;
}

/** What each row of a usage report is about. */
export type UsageBy = "department" | "project" | "user" | "pool" | "class" | "job";

/** What was used in a span of time, the largest first. */
export interface UsageReport {
  by: UsageBy;
  since: string | null;
  until: string;
  rows: UsageRow[];
  kept_since: string | null;
}

/** What one department, project, user, pool, class or job has used. */
export interface UsageRow {
  of: string;
  name: string;
  project: string;
  user: string;
  attempts: number;
  evicted: number;
  held: Amounts;
  lost: number;
  borrowed: number;
  busy: number | null;
  median_wait: number | null;
  long_wait: number | null;
}

/** How much of one quantity something used over a time. */
export interface UsageSeries {
  quantity: Quantity;
  attempt: number | null;
  rank: number | null;
  gpu: string | null;
  times: string[];
  values: number[];
}

/** What keeps a job out of the queue. */
export type WaitKind = "user" | "operator" | "suspended" | "time";

/** One reason not to place a job yet; it may have several. */
export interface WaitReason {
  kind: WaitKind;
  by: string;
  since: string | null;
  until: string | null;
}

/** Nodes that take nothing, or the jobs of one project alone, from a time to a time. */
export interface Window {
  name: string;
  begins: string;
  ends: string;
  nodes: string[];
  labels: Record<string, string>;
  project: string;
  reason: string;
  /** Seconds. */
  notice: number;
  mode: WindowMode;
}

/** What becomes of jobs that still run when a window begins. */
export type WindowMode = "wait";

/** What each call answers, by its verb and path. */
export interface Calls {
  "GET /metrics": string;
  "GET /metrics/nodes": string;
  "GET /v1/accounts": Listed<Account>;
  "POST /v1/accounts": Account;
  "DELETE /v1/accounts/{kind}/{account}": void;
  "GET /v1/alerts": Listed<Alert>;
  "GET /v1/audit": Listed<AuditEntry>;
  "POST /v1/check": Listed<JobSpec>;
  "GET /v1/cloudevents": Listed<CloudEvent>;
  "GET /v1/events": Listed<FleetEvent>;
  "GET /v1/images": Listed<ImageView>;
  "POST /v1/images/pulls": PullView;
  "GET /v1/images/pulls/{pull}": PullView;
  "GET /v1/jobs": Listed<JobView>;
  "POST /v1/jobs": JobView;
  "POST /v1/jobs/actions": Listed<ActionOutcome>;
  "DELETE /v1/jobs/{job}": void;
  "GET /v1/jobs/{job}": JobView;
  "PATCH /v1/jobs/{job}": JobView;
  "GET /v1/jobs/{job}/bands": Listed<BandSeries>;
  "GET /v1/jobs/{job}/checkpoints": JobCheckpoints;
  "DELETE /v1/jobs/{job}/checkpoints/{attempt}/{checkpoint}": void;
  "POST /v1/jobs/{job}/checkpoints/{attempt}/{checkpoint}/pin": CheckpointView;
  "POST /v1/jobs/{job}/checkpoints/{attempt}/{checkpoint}/unpin": CheckpointView;
  "GET /v1/jobs/{job}/differences": Listed<JobDifference>;
  "GET /v1/jobs/{job}/events": Listed<JobEvent>;
  "GET /v1/jobs/{job}/file": JobSpec;
  "POST /v1/jobs/{job}/hold": JobView;
  "GET /v1/jobs/{job}/logs": Listed<LogLine>;
  "GET /v1/jobs/{job}/metrics": Listed<UsageSeries>;
  "GET /v1/jobs/{job}/outputs": JobOutputs;
  "POST /v1/jobs/{job}/outputs/retry": OutputsRetry;
  "GET /v1/jobs/{job}/points": Listed<RankPoints>;
  "POST /v1/jobs/{job}/resubmit": JobView;
  "POST /v1/jobs/{job}/resume": JobView;
  "GET /v1/jobs/{job}/samples": Listed<SampleOfNode>;
  "POST /v1/jobs/{job}/stop": JobView;
  "POST /v1/jobs/{job}/suspend": JobView;
  "POST /v1/jobs/{job}/unhold": JobView;
  "GET /v1/jobs/{job}/why": Explanation;
  "GET /v1/join-tokens": Listed<IssuedJoinToken>;
  "POST /v1/join-tokens": MadeJoinToken;
  "DELETE /v1/join-tokens/{token}": IssuedJoinToken;
  "GET /v1/live": Listed<Record<string, unknown>>;
  "GET /v1/login": void;
  "GET /v1/login/callback": void;
  "GET /v1/nodes": Listed<NodeView>;
  "DELETE /v1/nodes/{node}": void;
  "GET /v1/nodes/{node}": NodeView;
  "POST /v1/nodes/{node}/cordon": NodeView;
  "GET /v1/nodes/{node}/events": Listed<NodeEvent>;
  "POST /v1/nodes/{node}/images/clear": Listed<ImageFate>;
  "PATCH /v1/nodes/{node}/labels": ChangedLabels;
  "GET /v1/nodes/{node}/metrics": Listed<UsageSeries>;
  "POST /v1/nodes/{node}/uncordon": NodeView;
  "DELETE /v1/nodes/{node}/volumes/{project}/{volume}": void;
  "GET /v1/pools": Listed<PoolView>;
  "DELETE /v1/pools/{pool}": void;
  "PUT /v1/pools/{pool}": ArrangedPool;
  "GET /v1/projects": Listed<Project>;
  "DELETE /v1/projects/{project}": void;
  "GET /v1/projects/{project}": Project;
  "PUT /v1/projects/{project}": Project;
  "GET /v1/projects/{project}/notifications": Listed<Subscription>;
  "DELETE /v1/projects/{project}/notifications/{subscription}": void;
  "PUT /v1/projects/{project}/notifications/{subscription}": Subscription;
  "GET /v1/projects/{project}/notifications/{subscription}/deliveries": Listed<DeliveryTry>;
  "POST /v1/projects/{project}/notifications/{subscription}/test": DeliveryTry;
  "GET /v1/projects/{project}/policies": Listed<JobPolicy>;
  "PUT /v1/projects/{project}/policy": JobPolicy;
  "GET /v1/projects/{project}/secrets": Listed<Secret>;
  "DELETE /v1/projects/{project}/secrets/{secret}": void;
  "PUT /v1/projects/{project}/secrets/{secret}": Secret;
  "GET /v1/prometheus/targets": string;
  "GET /v1/queue": Listed<QueueLine>;
  "GET /v1/quotas": Listed<UnitStandingView>;
  "PUT /v1/quotas": AppliedQuotas;
  "GET /v1/samples": Listed<SampleOfNode>;
  "DELETE /v1/session": void;
  "POST /v1/session": Myself;
  "GET /v1/tokens": Listed<IssuedToken>;
  "POST /v1/tokens": MadeToken;
  "DELETE /v1/tokens/{token}": IssuedToken;
  "GET /v1/usage": UsageReport;
  "GET /v1/volumes": Listed<KeptVolumeView>;
  "GET /v1/whoami": Myself;
  "GET /v1/windows": Listed<Window>;
  "DELETE /v1/windows/{window}": Window;
  "PUT /v1/windows/{window}": Window;
}
