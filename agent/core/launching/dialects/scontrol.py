"""What user code finds as `scontrol` with Slurm's dialect: a script that spells out short lists of nodes."""

SCONTROL = r"""#!/bin/sh
# Slurm's `scontrol show hostnames [LIST]`: one name a line of gpu-[1-3,07],login. Without LIST: $SLURM_JOB_NODELIST.

refuse() {
  printf 'scontrol: %s\n' "$1" >&2
  exit 1
}

# What $1 stands before, for each name that $2 means. A subshell: its variables are its own.
names() (
  case $2 in
    *\[*) ;;
    *)
      printf '%s\n' "$1$2"
      exit
      ;;
  esac
  before=$1${2%%\[*} after=${2#*\[}
  ranges=${after%%\]*} after=${after#*\]}
  while :; do
    range=${ranges%%,*} first=${ranges%%[,-]*} last=${range#*-}
    for number in "$first" "$last"; do
      case $number in '' | *[!0-9]* | ??????????*) refuse "cannot read the list of nodes: [$ranges]" ;; esac
    done
    # Numbers with zeros in front would be octal.
    number=${first#"${first%%[!0]*}"} end=${last#"${last%%[!0]*}"}
    number=${number:-0} end=${end:-0}
    while [ "$number" -le "$end" ]; do
      case $after in
        *\[*) names "$before$(printf "%0${#first}d" "$number")" "$after" || exit ;;
        *) printf "%s%0${#first}d%s\n" "$before" "$number" "$after" ;;
      esac
      number=$((number + 1))
    done
    case $ranges in *,*) ranges=${ranges#*,} ;; *) break ;; esac
  done
)

spell_out() {
  rest=$1
  while [ -n "$rest" ]; do
    item=
    # A name ends at a comma that stands in no brackets.
    while :; do
      head=${rest%%[],[]*}
      item=$item$head rest=${rest#"$head"}
      case $rest in
        '') break ;;
        ,*)
          rest=${rest#,}
          break
          ;;
        \[*\]*) head=${rest%%\]*}] ;;
        *) refuse "cannot read the list of nodes: its brackets do not close" ;;
      esac
      item=$item$head rest=${rest#"$head"}
    done
    names '' "$item" || exit
  done
}

[ "${1-}" = show ] || refuse "only 'scontrol show hostnames [LIST]' is here, not: $*"
case ${2-} in
  hostn | hostna | hostnam | hostname | hostnames) ;;
  *) refuse "only 'scontrol show hostnames [LIST]' is here, not: $*" ;;
esac
list=${3-${SLURM_JOB_NODELIST-}}
[ -n "$list" ] || refuse 'no list of nodes: neither as an argument nor in SLURM_JOB_NODELIST'
spell_out "$list"
"""
"""The script; it needs a POSIX shell, and no other program."""
