"""What user code finds as `sbcast` with Slurm's dialect: a script that copies a file to all nodes of the job."""

SBCAST = r"""#!/bin/sh
# Slurm's sbcast inside a job: copies a file to the same place in every execution. Nobody sees a part of it.

fail() {
  printf 'sbcast: %s\n' "$1" >&2
  exit 1
}

force='' source='' target=''
while [ $# -gt 0 ]; do
  case $1 in
    -f | --force) force=1 ;;
    -p | --preserve | -v | --verbose | -Z | --exclude=NONE) ;;
    -C* | --compress* | --size=* | --fanout=* | --timeout=*) ;;
    -s | -F | -t | --size | --fanout | --timeout)
      [ $# -gt 1 ] || fail "$1 wants a value"
      shift
      ;;
    -*) fail "the option $1 is not known inside a job" ;;
    *)
      [ -z "$target" ] || fail "$1 is one word too many: sbcast [-f] FILE TARGET"
      if [ -z "$source" ]; then source=$1; else target=$1; fi
      ;;
  esac
  shift
done
[ -n "$target" ] || fail 'what is to be copied where? sbcast [-f] FILE TARGET'
[ -f "$source" ] && [ -r "$source" ] || fail "$source is no file that can be read"
[ -n "${MUSTER_DOOR-}" ] || fail "the job's file wants 'gang_commands: true', or 'framework: mpi'"

executable=''
[ ! -x "$source" ] || executable=1
case $target in */) target=$target${source##*/} ;; esac
exec muster-exec --all sh -c '
  said=$(
    exec 2>&1
    part=$1.muster-$$
    trap "rm -f \"\$part\"" EXIT
    trap "exit 1" HUP INT TERM
    [ ! -d "$1" ] || { echo "$1 is a directory" && exit 1; }
    [ -n "$2" ] || [ ! -e "$1" ] || { echo "$1 is there already; --force writes over it" && exit 1; }
    cat >"$part" || exit
    [ -z "$3" ] || chmod +x "$part" || exit
    mv -f "$part" "$1"
  ) || { echo "sbcast: $SLURMD_NODENAME: $said" >&2 && exit 1; }
' sbcast "$target" "$force" "$executable" <"$source"
"""
"""The script for every rank."""
