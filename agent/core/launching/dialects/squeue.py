"""What user code finds as `squeue` with Slurm's dialect: a script that tells of the job it runs in, and no other."""

SQUEUE = r"""#!/bin/sh
# Slurm's squeue inside a job: one line, of the job that it is called in.

fail() {
  printf 'squeue: %s\n' "$1" >&2
  exit 1
}

# A field of one letter, in $field.
look_up() {
  case $1 in
    i | A | F) field=$SLURM_JOB_ID ;;
    j) field=$SLURM_JOB_NAME ;;
    P) field=$SLURM_JOB_PARTITION ;;
    u) field=$(id -un 2>/dev/null) || field=$(id -u) ;;
    U) field=$(id -u) ;;
    t) field=R ;;
    T) field=RUNNING ;;
    M) field=$(elapsed) ;;
    D) field=$SLURM_JOB_NUM_NODES ;;
    N | R) field=$SLURM_JOB_NODELIST ;;
    C) field=$((SLURM_CPUS_ON_NODE * SLURM_JOB_NUM_NODES)) ;;
    r) field=None ;;
    *) return 1 ;;
  esac
}

title() {
  case $1 in
    i | A) field=JOBID ;;
    F) field=ARRAY_JOB_ID ;;
    j) field=NAME ;;
    P) field=PARTITION ;;
    u) field=USER ;;
    U) field=UID ;;
    t) field=ST ;;
    T) field=STATE ;;
    M) field=TIME ;;
    D) field=NODES ;;
    N) field=NODELIST ;;
    R) field='NODELIST(REASON)' ;;
    C) field=CPUS ;;
    r) field=REASON ;;
  esac
}

# How long the command on rank 0 has run: [days-][hours:]minutes:seconds.
elapsed() {
  file=${TMPDIR:-/tmp}/muster-batch-$MUSTER_EXECUTION_ID
  [ -r "$file" ] && read -r began <"$file" || {
    printf INVALID
    return
  }
  seconds=$(($(date +%s) - ${began#* }))
  hours=$((seconds / 3600 % 24)) minutes=$((seconds / 60 % 60)) days=$((seconds / 86400)) seconds=$((seconds % 60))
  if [ "$days" -gt 0 ]; then
    printf '%d-%02d:%02d:%02d' "$days" "$hours" "$minutes" "$seconds"
  elif [ "$hours" -gt 0 ]; then
    printf '%d:%02d:%02d' "$hours" "$minutes" "$seconds"
  else
    printf '%d:%02d' "$minutes" "$seconds"
  fi
}

# A line in the format $2, with what $1 says for each letter.
line() {
  rest=$2 made=''
  while :; do
    case $rest in
      *%*) ;;
      *) break ;;
    esac
    made=$made${rest%%\%*} rest=${rest#*\%}
    width=${rest%%[!.0-9]*}
    rest=${rest#"$width"}
    letter=${rest%"${rest#?}"}
    rest=${rest#?}
    "$1" "$letter" || fail "the field %$letter is not known inside a job"
    case $width in
      '') ;;
      .?*) field=$(printf "%${width#.}.${width#.}s" "$field") ;;
      *) field=$(printf "%-${width}.${width}s" "$field") ;;
    esac
    made=$made$field
  done
  printf '%s\n' "$made$rest"
}

format='%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R' header=1 shown=1

one_of() {
  [ -z "$1" ] && return
  case ",$1," in *",$2,"*) ;; *) shown='' ;; esac
}

option() {
  case $1 in
    -o | --format) format=$2 ;;
    -j | --jobs) one_of "$2" "$SLURM_JOB_ID" ;;
    -n | --name) one_of "$2" "$SLURM_JOB_NAME" ;;
    -t | --states)
      case ,$2, in *,[aA][lL][lL],* | *,[rR],* | *,[rR][uU][nN][nN][iI][nN][gG],*) ;; *) shown='' ;; esac
      ;;
  esac
}

while [ $# -gt 0 ]; do
  case $1 in
    -h | --noheader) header='' ;;
    --me) ;;
    --format=* | --jobs=* | --name=* | --states=*) option "${1%%=*}" "${1#*=}" ;;
    -o | -j | -n | -t | --format | --jobs | --name | --states)
      [ $# -gt 1 ] || fail "$1 wants a value"
      option "$1" "$2"
      shift
      ;;
    -[ojnt]*)
      value=${1#-?}
      option "${1%"$value"}" "$value"
      ;;
    *) fail "the option $1 is not known inside a job" ;;
  esac
  shift
done

told=$(line look_up "$format") || exit
[ -z "$header" ] || line title "$format"
[ -z "$shown" ] || printf '%s\n' "$told"
"""
"""The script; time is known on rank 0 of a job with commands in other executions."""
