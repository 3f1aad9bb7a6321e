"""What user code finds as `srun` with Slurm's dialect: a script that starts a program in the executions of the job."""

SRUN = r"""#!/bin/sh
# Slurm's srun inside a job: starts tasks of a program in its executions, each a node, through muster-exec.
# Without --ntasks and --nodes: as many tasks in each execution as it has processes.

fail() {
  printf 'srun: %s\n' "$1" >&2
  exit 1
}

# In one execution: its tasks of a step, which the executions of $3 have, as rank:count.
tasks() {
  exports=$1 where=$2 counts=$3 step=$4 labels=$5 gpus_per_task=$6
  shift 6
  inside=$(command -v muster-inside) || fail "muster-inside is not in PATH on $SLURMD_NODENAME"
  # The variables of whoever called srun, but for those that each execution has of its own.
  set -f
  IFS=,
  own=${MUSTER_OWN_VARIABLES-},SLURMD_NODENAME,SLURM_CPUS_ON_NODE,SLURM_GPUS_ON_NODE,SLURM_SUBMIT_DIR
  for name in $own; do eval "[ -z \"\${$name+set}\" ] || own_$name=\$$name"; done
  eval "$exports"
  for name in $own; do eval "[ -z \"\${own_$name+set}\" ] || export $name=\"\$own_$name\""; done
  unset IFS
  set +f
  export PATH="$MUSTER_CONFIG_DIR/bin:${inside%/*}:$PATH"
  case $where in
    '') ;;
    /*) cd "$where" || fail "no directory $where on $SLURMD_NODENAME" ;;
    *) cd "$SLURM_SUBMIT_DIR/$where" || fail "no directory $where on $SLURMD_NODENAME" ;;
  esac
  first=0 count=0 total=0 node=0 nodes=0
  for each in $counts; do
    if [ "${each%:*}" = "$MUSTER_RANK" ]; then first=$total count=${each#*:} node=$nodes; fi
    total=$((total + ${each#*:})) nodes=$((nodes + 1))
  done
  if [ -n "$gpus_per_task" ]; then
    there=${SLURM_GPUS_ON_NODE:-0} devices='' device=0
    [ $((count * gpus_per_task)) -le "$there" ] ||
      fail "$count tasks of $SLURMD_NODENAME with $gpus_per_task GPUs each are more than its $there GPUs"
    while [ "$device" -lt "$there" ]; do devices="${devices:+$devices,}$device" device=$((device + 1)); done
    export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-$devices}"
  fi
  export SLURM_NODEID="$node" SLURM_NNODES="$nodes" SLURM_NTASKS="$total" SLURM_NPROCS="$total"
  export SLURM_STEP_ID="$step" SLURM_STEPID="$step" SLURM_STEP_NUM_TASKS="$total" SLURM_STEP_NUM_NODES="$nodes"
  exec "$inside" tasks "$first" "$count" "${labels:-0}" "${gpus_per_task:-0}" "$@"
}

if [ "${1-}" = --muster-tasks ]; then
  shift
  tasks "$@"
fi

ntasks='' nodes='' per_node='' nodelist='' labels='' where='' exports=ALL gpus_per_task=''

number() {
  case $2 in '' | *[!0-9]* | 0) fail "$1 wants a number of 1 or more, not '$2'" ;; esac
}

option() {
  case $1 in
    -n | --ntasks) number "$1" "$2" && ntasks=$2 ;;
    -N | --nodes) number "$1" "$2" && nodes=$2 ;;
    --ntasks-per-node) number "$1" "$2" && per_node=$2 ;;
    -w | --nodelist) nodelist=$2 ;;
    -D | --chdir) where=$2 ;;
    --export) exports=$2 ;;
    --gpus-per-task) number "$1" "$2" && gpus_per_task=$2 ;;
  esac
}

while [ $# -gt 0 ]; do
  word=$1
  case $word in
    --)
      shift
      break
      ;;
    -l | --label) labels=1 ;;
    -K | --kill-on-bad-exit | --kill-on-bad-exit=1 | -u | --unbuffered | -Q | --quiet | -v | --verbose) ;;
    -O | --overcommit | -s | --oversubscribe | --exclusive | --exact | --overlap | -E | --preserve-env) ;;
    --ntasks=* | --nodes=* | --ntasks-per-node=* | --nodelist=* | --chdir=* | --export=* | \
      --gpus-per-task=*)
      option "${word%%=*}" "${word#*=}"
      ;;
    --ntasks | --nodes | --ntasks-per-node | --nodelist | --chdir | --export | --gpus-per-task | \
      -n | -N | -w | -D)
      [ $# -gt 1 ] || fail "$word wants a value"
      option "$word" "$2"
      shift
      ;;
    -[nNwD]*)
      value=${word#-?}
      option "${word%"$value"}" "$value"
      ;;
    --mpi=* | --cpu-bind=* | --cpu_bind=* | --gpu-bind=* | --mem-bind=* | --hint=* | --distribution=*) ;;
    --gres=* | --gpus=* | --gpus-per-node=* | --cpus-per-task=* | --cpus-per-gpu=*) ;;
    --mem=* | --mem-per-cpu=* | --mem-per-gpu=*) ;;
    --job-name=* | --time=* | --partition=* | --account=* | --qos=* | --wait=* | --threads-per-core=* | --network=*) ;;
    -c | -J | -t | -p | -A | -G | -m | -W | --mpi | --cpu-bind | --gres | --gpus | --gpus-per-node | --cpus-per-task | \
      --mem | --job-name)
      [ $# -gt 1 ] || fail "$word wants a value"
      shift
      ;;
    -[cJtpAGmW]*) ;;
    -*) fail "the option $word is not known inside a job; docs/dialects.md lists those that are" ;;
    *) break ;;
  esac
  shift
done

[ $# -gt 0 ] || fail 'no program to run'
[ -n "${MUSTER_DOOR-}" ] || fail "the job's file wants 'gang_commands: true', or 'framework: mpi'"
case $exports in
  ALL) exports=$(export -p) ;;
  NONE) exports='' ;;
  *) fail "only --export=ALL and --export=NONE are known, not --export=$exports" ;;
esac
case ${where:-$PWD} in
  "$SLURM_SUBMIT_DIR") where='' ;;
  "$SLURM_SUBMIT_DIR"/*)
    where=${where:-$PWD}
    where=${where#"$SLURM_SUBMIT_DIR"/}
    ;;
  *) where=${where:-$PWD} ;;
esac

# The ranks of the nodes that may be used, and how many tasks each has by itself.
ranks='' rank=0
all=$(scontrol show hostnames) || exit
chosen=$all
[ -z "$nodelist" ] || chosen=$(scontrol show hostnames "$nodelist") || exit
for name in $all; do
  for each in $chosen; do
    if [ "$each" = "$name" ]; then
      ranks="$ranks $rank"
      break
    fi
  done
  rank=$((rank + 1))
done
for name in $chosen; do
  case "
$all
" in
    *"
$name
"*) ;;
    *) fail "$name is no node of this job" ;;
  esac
done
own_counts=
rest=$SLURM_TASKS_PER_NODE,
while [ -n "$rest" ]; do
  run=${rest%%,*} rest=${rest#*,}
  times=1
  case $run in *'(x'*) times=${run#*(x} times=${times%)} ;; esac
  while [ "$times" -gt 0 ]; do own_counts="$own_counts ${run%%(*}" times=$((times - 1)); done
done

# How many tasks each of the ranks gets.
there=0
for rank in $ranks; do there=$((there + 1)); done
[ -z "$nodes" ] || [ "$nodes" -le "$there" ] || fail "--nodes: there are $there nodes, not $nodes"
used=${nodes:-$there}
if [ -n "$per_node" ]; then
  [ -z "$ntasks" ] || [ "$ntasks" -ge "$used" ] || used=$ntasks
  [ -n "$ntasks" ] || ntasks=$((per_node * used))
  [ "$ntasks" -le $((per_node * used)) ] || fail "$ntasks tasks are more than $per_node on each of $used nodes"
elif [ -n "$ntasks" ] && [ "$ntasks" -lt "$used" ]; then
  used=$ntasks
fi
counts='' list='' position=0
for rank in $ranks; do
  [ "$position" -lt "$used" ] || break
  if [ -n "$ntasks" ]; then
    count=$((ntasks / used))
    [ "$position" -ge $((ntasks % used)) ] || count=$((count + 1))
  else
    index=0
    for count in $own_counts; do
      [ "$index" -lt "$rank" ] || break
      index=$((index + 1))
    done
  fi
  counts="$counts $rank:$count" list="$list,$rank" position=$((position + 1))
done

# Steps have numbers: a file that is there was made by another step.
step=0
while ! (set -C && : >"${TMPDIR:-/tmp}/muster-step-$MUSTER_EXECUTION_ID-$step") 2>/dev/null; do
  step=$((step + 1))
  [ "$step" -lt 100000 ] || fail "no file can be made in ${TMPDIR:-/tmp}"
done

exec muster-exec --step --ranks "${list#,}" \
  srun --muster-tasks "$exports" "$where" "${counts# }" "$step" "$labels" "$gpus_per_task" "$@"
"""
"""The script; it needs a POSIX shell, and of other programs `muster-exec`, `muster-inside` and `scontrol` alone."""
