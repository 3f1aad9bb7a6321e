"""What ends a job from inside with Slurm's dialect: a parent of the command on rank 0, and `scancel`."""

PARENT_OF_COMMAND = r"""#!/bin/sh
# Runs the job's command on rank 0. SIGTERM goes to the command and all that stands in its process group: a shell waits
# for the program in front before it heeds a signal, and the first process of a container has none by default.

printf '%s %s\n' "$$" "$(date +%s)" >"${TMPDIR:-/tmp}/muster-batch-$MUSTER_EXECUTION_ID"
"$@" <&0 &
command=$! ended=''
end_all() {
  ended=1
  trap '' TERM
  kill -s TERM 0
  trap end_all TERM
}
trap end_all TERM
code=0
wait "$command" || code=$?
while kill -s 0 "$command" 2>/dev/null; do
  code=0
  wait "$command" || code=$?
done
# A signal may have cut the last wait short, although the command had ended: its code is still to be asked for.
again=0
wait "$command" 2>/dev/null || again=$?
[ "$again" = 127 ] || code=$again

# Whether another process of this group is there: its step may be ending its tasks on other nodes.
others() {
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    [ "${line%% *}" != "$$" ] || continue
    set -- ${line##*) } # state, parent, group
    [ "$3" != "$$" ] || [ "$1" = Z ] || return 0
  done
  return 1
}

tries=0
while [ -n "$ended" ] && [ "$tries" -lt 300 ] && others; do
  sleep 0.1
  tries=$((tries + 1))
done
exit "$code"
"""
"""The parent; its number, and when it began in seconds since 1970, stand in a file of rank 0."""

SCANCEL = r"""#!/bin/sh
# Slurm's scancel inside a job: ends the job that it is called in.

fail() {
  printf 'scancel: %s\n' "$1" >&2
  exit 1
}

ids=''
while [ $# -gt 0 ]; do
  case $1 in
    -Q | --quiet | -v | --verbose | --) ;;
    -*) fail "the option $1 is not known inside a job" ;;
    *) ids="$ids $1" ;;
  esac
  shift
done
[ -n "$ids" ] || fail "which job? This one is $SLURM_JOB_ID"
for id in $ids; do
  [ "$id" = "$SLURM_JOB_ID" ] || fail "job $id is not this one, which is $SLURM_JOB_ID; only this one can be ended"
done
[ -n "${MUSTER_DOOR-}" ] || fail "the job's file wants 'gang_commands: true', or 'framework: mpi'"
exec muster-exec 0 'read -r pid began <"${TMPDIR:-/tmp}/muster-batch-$MUSTER_EXECUTION_ID" && kill -s TERM "$pid"'
"""
"""The script for every rank."""
