#!/bin/sh
# Installs Muster from the bundle that this file lies in; needs no internet, and of the machine only a shell, tar and
# sha256sum, and openssl where signatures are checked. Run as root; see docs/install.md. The last line on standard output
# says `changed` or `unchanged`.
set -eu
umask 022

PREFIX=/opt/muster
ETC=/etc/muster
STATE=/var/lib/muster
LINKS=/usr/local/bin
UNITS=/etc/systemd/system
PROGRAMS='muster muster-agent muster-console muster-coordinator muster-depot muster-relay'
SERVICES='coordinator relay depot console agent' # in the order in which they start
BESIDE='relay depot' # those that come with the coordinator
NEEDED_MIB=400

here=$(cd "$(dirname "$0")" && pwd)
changed=
tree_changed=
service_changed=
switched_from=
previous=
unfinished=
stopped=
put_aside=
keeps_settings=

usage() {
  cat <<'END'
usage: sh install.sh ROLE [options]           install or upgrade, and start the service
       sh install.sh --rollback ROLE          go back to the version before; with --restore-database even if the
                                              coordinator's database was converted since, which loses what was stored
                                              since then
       sh install.sh remove ROLE [--purge]    with --purge its state, settings and users, too
       sh install.sh check BUNDLE.tar [--signer SIGNER]  see who signed another bundle and whether it is whole;
                                                         changes nothing. A bundle cannot vouch for itself: use the
                                                         installer that is here already, /opt/muster/current/install.sh
ROLE is agent, coordinator, console or cli.
options:
  --signer SIGNER         refuse a bundle unless this key has signed it: sha256:... or a file with its public half; may be
                          repeated. Kept in /etc/muster/bundle-signers, and asked for by the next installation, too
  --config-from FILE      settings for /etc/muster/ROLE.toml, in place of what is there
  --join-file FILE        token with which an agent joins, kept in /etc/muster/join-token until it has joined
  --method venv|frozen|auto   with this machine's Python, or with one that the bundle brings along (auto)
  --no-start              install only; neither enable nor start the service
END
}

say() { printf '%s\n' "$*"; }
warn() { printf 'install.sh: %s\n' "$*" >&2; }
fail() {
  warn "$*"
  exit 1
}
change() {
  changed=1
  say "$*"
}

main() {
  action=install role='' config='' join='' method=auto start=1 purge='' signers='' archive='' restore=''
  while [ $# -gt 0 ]; do
    case $1 in
      agent | coordinator | console | cli) role=$1 ;;
      remove) action=remove ;;
      check) action=check; shift; archive=${1:?check needs a bundle} ;;
      --signer) shift; add_signer "${1:?--signer needs a fingerprint or a file}" ;;
      --rollback) action=rollback ;;
      --restore-database) restore=1 ;;
      --config-from) shift; config=${1:?--config-from needs a file} ;;
      --join-file) shift; join=${1:?--join-file needs a file} ;;
      --method) shift; method=${1:?--method needs venv, frozen or auto} ;;
      --no-start) start= ;;
      --purge) purge=1 ;;
      -h | --help) usage; exit 0 ;;
      *) usage >&2; fail "$1 is not known" ;;
    esac
    shift
  done
  if [ "$action" = check ]; then
    check_archive
    return
  fi
  [ -n "$role" ] || { usage >&2; fail "say what to install: agent, coordinator, console or cli"; }
  case $method in venv | frozen | auto) ;; *) fail "--method is venv, frozen or auto, not $method" ;; esac
  [ "$(id -u)" = 0 ] || fail "must run as root; try: sudo sh $0 $role"
  for tool in tar sha256sum sed grep; do
    command -v $tool >/dev/null || fail "$tool is missing on this machine; install it with the system's packages"
  done
  for file in "$config" "$join"; do
    [ -z "$file" ] || [ -r "$file" ] || fail "cannot read $file"
  done
  mkdir -p "$PREFIX"
  if command -v flock >/dev/null; then
    exec 9>"$PREFIX/.lock"
    flock -n 9 || fail "another installation is at work on this machine"
  fi
  trap finish EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  "$action"_role
  if [ -n "$changed" ]; then say changed; else say unchanged; fi
}

finish() {
  status=$?
  trap '' INT TERM
  trap - EXIT
  [ -z "$unfinished" ] || rm -rf "$unfinished"
  if [ $status != 0 ] && [ -n "$switched_from" ]; then
    warn "going back to version $switched_from"
    failed=$(version_of current)
    stop_coordinator
    link_version current "$switched_from"
    if [ -n "$previous" ]; then link_version previous "$previous"; else rm -f "$PREFIX/previous"; fi
    install_units
    if [ -n "$put_aside" ]; then put_database_back; else restore_database "$failed" "$switched_from"; fi
    restart_all || true
  fi
  exit $status
}

# ---- installing

install_role() {
  check_bundle
  install_tree
  if [ "$role" != cli ]; then
    make_users
    install_settings
  fi
  keep_signers
  switch_version "$version"
  link_programs
  if [ "$role" = cli ]; then return; fi
  install_units
  if [ -n "$start" ]; then start_service; fi
  prune_versions
}

check_bundle() {
  [ -r "$here/bundle.json" ] || fail "$here/bundle.json is missing; unpack the whole bundle and run install.sh there"
  check_signature "$here"
  grep -q '"format": 1,' "$here/bundle.json" || fail "this bundle has a format that its installer does not know"
  version=$(sed -n 's/^ *"version": "\([^"]*\)",*$/\1/p' "$here/bundle.json")
  case $version in [!0-9]* | '' | *[!0-9a-z.+]*) fail "$here/bundle.json names no version" ;; esac
  hashes | (cd "$here" && sha256sum -c --quiet - >&2) ||
    fail "the bundle was changed or did not arrive whole; fetch it again"
  listed=" $(hashes | sed 's/^[^ ]*  //' | tr '\n' ' ')"
  for file in "$here"/wheels/* "$here"/requirements/* "$here"/units/* "$here"/frozen/*; do
    if [ ! -e "$file" ] && [ ! -L "$file" ]; then continue; fi
    case $listed in *" ${file#"$here"/} "*) ;; *) fail "$file does not belong to the bundle; unpack it anew" ;; esac
  done
  identity=$(sha256sum <"$here/bundle.json")
  identity=${identity%% *}
}

# Of all files of the bundle, as sha256sum reads them.
hashes() {
  sed -n 's/^ *"\([^"]*\)": "\([0-9a-f]\{64\}\)",*$/\2  \1/p' "$here/bundle.json"
}

# ---- who made it

add_signer() {
  case $1 in
    sha256:*) key=$1 ;;
    *)
      [ -r "$1" ] || fail "cannot read the public key $1"
      key=$(fingerprint "$1") || exit 1 ;;
  esac
  case ${key#sha256:} in *[!0-9a-f]*) key= ;; esac
  [ ${#key} = 71 ] || fail "--signer takes sha256: and 64 digits, or a file with a public key, not $1"
  signers="$signers $key"
}

# The name of a public key.
fingerprint() {
  needs_openssl
  openssl pkey -pubin -in "$1" -noout 2>/dev/null || fail "$1 is no public key"
  found=$(openssl pkey -pubin -in "$1" -outform DER | sha256sum)
  say "sha256:${found%% *}"
}

needs_openssl() {
  command -v openssl >/dev/null || fail "openssl is missing on this machine, and checks who signed a bundle; install it, \
or check the bundle elsewhere with \`muster bundles verify --signer\`"
}

# Refuses what nobody has signed who is believed; says so where nobody has to have signed it.
check_signature() {
  if [ -z "$signers" ] && [ -s "$ETC/bundle-signers" ]; then
    while read -r key; do add_signer "$key"; done <"$ETC/bundle-signers"
  fi
  if [ -z "$signers" ]; then
    warn "who made this bundle is not checked, as no --signer says who has to have signed it (docs/bundle.md)"
    return
  fi
  needs_openssl
  if [ ! -s "$1/bundle.sig" ] || [ ! -s "$1/bundle.pub" ]; then
    fail "nobody has signed this bundle, and one of these has to:$signers"
  fi
  key=$(fingerprint "$1/bundle.pub") || exit 1
  case "$signers " in
    *" $key "*) ;;
    *) fail "this bundle is signed by $key, and one of these has to have signed it:$signers" ;;
  esac
  openssl dgst -sha256 -verify "$1/bundle.pub" -signature "$1/bundle.sig" "$1/bundle.json" >/dev/null 2>&1 ||
    fail "the signature does not fit: this bundle was changed after $key signed it"
  say "signed by $key"
}

keep_signers() {
  if [ -z "$signers" ]; then return; fi
  [ -d "$ETC" ] || install -d -m 0755 "$ETC"
  for key in $signers; do say "$key"; done | sort -u >"$ETC/.bundle-signers.new"
  if cmp -s "$ETC/.bundle-signers.new" "$ETC/bundle-signers"; then
    rm "$ETC/.bundle-signers.new"
  else
    mv "$ETC/.bundle-signers.new" "$ETC/bundle-signers"
    change "wrote $ETC/bundle-signers"
  fi
}

# Another bundle, of which nothing is unpacked or run before all of it has proven right.
check_archive() {
  [ -r "$archive" ] || fail "cannot read $archive"
  unfinished=$(mktemp -d)
  trap finish EXIT
  for file in bundle.json bundle.sig bundle.pub; do
    tar -xOf "$archive" "$file" >"$unfinished/$file" 2>/dev/null || rm -f "$unfinished/$file"
  done
  [ -s "$unfinished/bundle.json" ] || fail "$archive is no bundle: it has no bundle.json"
  check_signature "$unfinished"
  here=$unfinished
  hashes | while read -r wanted file; do
    found=$(tar -xOf "$archive" "$file" 2>/dev/null | sha256sum)
    [ "${found%% *}" = "$wanted" ] || fail "$archive: $file is missing or was changed"
  done
  hashes | sed 's/^[^ ]*  //' | sort >"$unfinished/.listed"
  tar -tf "$archive" | grep -vx 'bundle\.json\|bundle\.sig\|bundle\.pub' | sort >"$unfinished/.there"
  cmp -s "$unfinished/.listed" "$unfinished/.there" || fail "$archive has files that do not belong there, or has one twice"
  say "$archive is whole; unpack it and run its install.sh"
}

install_tree() {
  tree=$PREFIX/$version
  installed=$(cat "$tree/.bundle" 2>/dev/null || true)
  case "$method $installed" in
    "auto $identity "* | "venv $identity venv" | "frozen $identity frozen")
      if "$tree/bin/muster" version >/dev/null 2>&1; then return; fi ;;
  esac
  free=$(df -Pk "$PREFIX" | sed -n '2s/^\S* *[0-9]* *[0-9]* *\([0-9]*\) .*/\1/p')
  [ "${free:-0}" -ge $((NEEDED_MIB * 1024)) ] ||
    fail "$PREFIX has $((${free:-0} / 1024)) MiB free and needs $NEEDED_MIB; make room and run this again"
  unfinished=$tree.new
  rm -rf "$unfinished"
  reasons=
  if [ "$method" != frozen ] && install_venv; then
    used=venv
  elif [ "$method" != venv ] && install_frozen; then
    used=frozen
  else
    warn "this machine cannot run what is in the bundle:"
    printf '%s' "$reasons" >&2
    fail "install one of these Pythons ($(platforms)), or make a bundle with \`muster bundles create --frozen\` for \
$(uname -m) on a system as old as this one (docs/bundle.md)"
  fi
  cp "$here/install.sh" "$here/bundle.json" "$unfinished/"
  mkdir "$unfinished/units"
  cp "$here"/units/*.service "$unfinished/units/"
  chmod -R go-w,a+rX "$unfinished"
  printf '%s %s\n' "$identity" "$used" >"$unfinished/.bundle"
  sync
  rm -rf "$tree.old"
  if [ -e "$tree" ]; then mv "$tree" "$tree.old"; fi
  mv "$unfinished" "$tree"
  unfinished=
  rm -rf "$tree.old"
  tree_changed=1
  change "installed $version in $tree ($used)"
}

because() {
  reasons="$reasons  $*
"
}

platforms() {
  sed -n 's/^ *"platforms": \[\(.*\)\],*$/\1/p' "$here/bundle.json" | tr -d '",'
}

install_venv() {
  if ! fits_glibc "$(value wheels_glibc)"; then
    because "its C library is older than $(value wheels_glibc), for which the wheels are built"
    return 1
  fi
  for python in python3 python3.14 python3.13 python3.12 python3.11; do
    found=$("$python" -I -c 'import sys; print("cp%d%d" % sys.version_info[:2])' 2>/dev/null) || continue
    case " $(platforms) " in
      *" $found-$(uname -m) "*) ;;
      *)
        because "$python is $found on $(uname -m), for which the bundle has no wheels"
        continue ;;
    esac
    if make_venv "$python" "$found-$(uname -m)"; then return 0; fi
    because "$python made no virtual environment: $(tail -n 1 "$PREFIX/.install.log")"
    rm -rf "$unfinished"
  done
  [ -n "$reasons" ] || because "it has no Python"
  return 1
}

# With this Python, for this platform: exactly the wheels that are listed, each with its hash, and nothing that one of them
# asks for. Isolated (-I), as the directory in which this was called may be one where others leave modules, too.
make_venv() {
  {
    "$1" -I -m venv --without-pip "$unfinished" &&
      "$unfinished/bin/python" -I "$(echo "$here"/wheels/pip-*.whl)/pip" install --quiet --no-index --no-compile \
        --no-cache-dir --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
        --find-links "$here/wheels" --requirement "$here/requirements/$2.txt" &&
      grep -rlIF "$unfinished" "$unfinished/bin" "$unfinished/pyvenv.cfg" | while read -r file; do
        sed -i "s|$unfinished|$tree|g" "$file"
      done &&
      "$unfinished/bin/python" -I -m compileall -q -s "$unfinished" -p "$tree" "$unfinished/lib"
  } >"$PREFIX/.install.log" 2>&1 </dev/null
}

install_frozen() {
  file=$here/frozen/muster-$(uname -m).tar.gz
  if [ ! -r "$file" ]; then
    because "the bundle brings no Python for $(uname -m) along"
    return 1
  fi
  if ! fits_glibc "$(value "frozen_glibc_$(uname -m)")"; then
    because "its C library is older than $(value "frozen_glibc_$(uname -m)"), which the bundle's own Python needs"
    return 1
  fi
  mkdir -p "$unfinished"
  tar -xzof "$file" -C "$unfinished"
  if ! "$unfinished/bin/muster" version >"$PREFIX/.install.log" 2>&1; then
    because "the bundle's own Python does not run: $(tail -n 1 "$PREFIX/.install.log")"
    return 1
  fi
}

# A plain value of bundle.json.
value() { sed -n "s/^ *\"$1\": \"\\([^\"]*\\)\",*\$/\\1/p" "$here/bundle.json"; }

fits_glibc() {
  has=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/^glibc //')
  [ -n "$has" ] || return 1
  [ "$(printf '%s\n%s\n' "$1" "$has" | sort -t. -k1,1n -k2,2n | head -n 1)" = "$1" ]
}

make_users() {
  case $role in
    coordinator) make_user muster "Muster coordinator" ;;
    console) make_user muster-console "Muster console" ;;
    agent)
      make_user muster-agent "Muster agent"
      make_user muster-job "Muster jobs"
      if grep -q '^docker:' /etc/group && ! id -nG muster-agent | tr ' ' '\n' | grep -qx docker; then
        usermod -aG docker muster-agent
        change "muster-agent may speak to Docker"
      fi ;;
  esac
}

make_user() {
  if id "$1" >/dev/null 2>&1; then return; fi
  command -v useradd >/dev/null || fail "useradd is missing on this machine; make a system user $1 and run this again"
  useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin --comment "$2" "$1"
  change "made the user $1"
}

install_settings() {
  case $role in
    agent) owner=muster-agent mode=0711 ;;
    console) owner=muster-console mode=0700 ;;
    *) owner=muster mode=0700 ;;
  esac
  [ -d "$ETC" ] || install -d -m 0755 "$ETC"
  [ -d "$STATE" ] || install -d -m 0755 "$STATE"
  [ -d "$STATE/$role" ] || install -d -m $mode -o $owner -g $owner "$STATE/$role"
  fresh=$ETC/.$role.toml.new
  : >"$fresh"
  chmod 0640 "$fresh"
  chgrp $owner "$fresh"
  if [ -n "$config" ]; then
    cat "$config" >"$fresh"
  elif [ -e "$ETC/$role.toml" ]; then
    cat "$ETC/$role.toml" >"$fresh"
  else
    default_settings >"$fresh"
  fi
  if [ "$role" = agent ] && ! grep -q '^ *job-user *=' "$fresh" && accepts job-user; then
    printf 'job-user = "%s:%s"\n' "$(id -u muster-job)" "$(id -g muster-job)" >>"$fresh"
  fi
  if cmp -s "$fresh" "$ETC/$role.toml"; then
    rm "$fresh"
  else
    mv "$fresh" "$ETC/$role.toml"
    change "wrote $ETC/$role.toml"
    service_changed=1
  fi
  if [ "$role" = agent ]; then install_token; fi
  if [ "$role" = coordinator ]; then
    for each in $BESIDE; do install_settings_beside "$each"; done
  fi
}

install_settings_beside() {
  if [ -e "$ETC/$1.toml" ]; then return; fi
  say "# Options of muster-$1: long options without their dashes; see docs/$1.md." >"$ETC/.$1.toml.new"
  chmod 0640 "$ETC/.$1.toml.new"
  chgrp "$owner" "$ETC/.$1.toml.new"
  mv "$ETC/.$1.toml.new" "$ETC/$1.toml"
  change "wrote $ETC/$1.toml"
}

default_settings() {
  say "# Options of muster-$role: long options without their dashes; see docs/install.md."
  case $role in
    console) say '# coordinator = "HOST:7460"' && say '# authority = "/etc/muster/authority.pem"' ;;
    agent) say '# coordinator = "HOST:7460"' && say 'join-file = "/etc/muster/join-token"' ;;
    coordinator) say 'listen = "0.0.0.0:7460"' ;;
  esac
}

accepts() { "$tree/bin/muster-agent" --help 2>/dev/null | grep -q -e "--$1"; }

install_token() {
  token=$ETC/join-token
  if [ -e "$STATE/agent/trust/node.json" ]; then
    return
  fi
  if [ -n "$join" ] && ! cmp -s "$join" "$token"; then
    install -m 0600 -o muster-agent -g muster-agent "$join" "$token.new"
    mv "$token.new" "$token"
    change "wrote $token"
    service_changed=1
  elif [ -e "$token" ] && [ "$(stat -c %U "$token")" != muster-agent ]; then
    chown muster-agent:muster-agent "$token" # readable by the agent alone
  fi
}

# ---- versions

version_of() {
  target=$(readlink "$PREFIX/$1" 2>/dev/null) || return 0
  printf '%s' "${target##*/}"
}

link_version() {
  ln -sfn "$2" "$PREFIX/.$1.new"
  mv -T "$PREFIX/.$1.new" "$PREFIX/$1"
}

switch_version() {
  now=$(version_of current)
  if [ "$now" = "$1" ]; then return; fi
  if [ -n "$now" ] && [ -d "$PREFIX/$now" ]; then
    previous=$(version_of previous)
    switched_from=$now
    link_version previous "$now"
  fi
  copies >"$PREFIX/.copies.$1"
  link_version current "$1"
  change "version $1 is in use"
}

link_programs() {
  for program in $PROGRAMS; do
    if [ "$(readlink "$LINKS/$program" 2>/dev/null)" = "$PREFIX/current/bin/$program" ]; then continue; fi
    mkdir -p "$LINKS"
    ln -sfn "$PREFIX/current/bin/$program" "$LINKS/$program"
    change "linked $LINKS/$program"
  done
}

# Versions that are neither in use, nor the one before, nor run.
prune_versions() {
  for old in "$PREFIX"/[0-9]*; do
    case ${old##*/} in "$(version_of current)" | "$(version_of previous)") continue ;; esac
    if [ ! -d "$old" ] || grep -qaF "$old/" /proc/[0-9]*/maps /proc/[0-9]*/cmdline 2>/dev/null; then continue; fi
    rm -rf "$old" "$PREFIX/.copies.${old##*/}"
    say "removed version ${old##*/}"
  done
}

rollback_role() {
  before=$(version_of previous)
  if [ -z "$before" ] || [ ! -d "$PREFIX/$before" ]; then fail "there is no version before the one in use"; fi
  now=$(version_of current)
  number=$(converted_by "$now")
  if [ -n "$number" ] && [ -z "$restore" ]; then
    fail "version $now has converted the coordinator's database, and version $before cannot read it any more. To go back
all the same, say --restore-database: its copy from before, of $(made_at "$(copy_of "$number")"), takes its place.
What was stored since then is lost: jobs, tokens, revocations, secrets; what runs of jobs since then is stopped.
The database of version $now stays beside it."
  fi
  switch_version "$before"
  tree=$PREFIX/$before
  if [ -n "$number" ]; then
    stop_coordinator
    restore_database "$now" "$before"
  fi
  if [ "$role" = cli ]; then
    if [ -n "$stopped" ]; then restart_all; fi
    return
  fi
  install_units
  start_service
}

# ---- the coordinator's database

copy_of() { printf '%s' "$STATE/coordinator/coordinator.db.before-v$1"; }

made_at() { date -r "$1" '+%Y-%m-%d %H:%M:%S'; }

# Copies that the coordinator has made before it converted its database, each with what tells it from another of that name.
copies() {
  for copy in "$(copy_of '')"*; do
    if [ -f "$copy" ]; then stat -c '%n %i %Y' "$copy"; fi
  done
}

# The number of the copy that was made since this version took the place of the one before; empty if there is none, so
# that the one before can go on with the database as it is.
converted_by() {
  [ -e "$PREFIX/.copies.$1" ] || return 0
  copies | grep -vxF -f "$PREFIX/.copies.$1" | sed -n 's/^.*\.before-v\([0-9]*\) .*$/\1/p' | sort -n | head -n 1
}

stop_coordinator() {
  if [ -e "$UNITS/muster-coordinator.service" ] && systemctl -q is-enabled muster-coordinator.service 2>/dev/null; then
    systemctl stop muster-coordinator.service || true
    stopped=coordinator
  fi
}

# Gives version $2 the database back that it had before version $1 converted it; the newer one stays beside it.
restore_database() {
  number=$(converted_by "$1")
  if [ -z "$number" ]; then return; fi
  since=$(made_at "$(copy_of "$number")")
  database=$STATE/coordinator/coordinator.db
  put_aside=$database.after-$1
  if [ -e "$put_aside" ]; then put_aside=$put_aside-$(date +%s); fi
  move_database "$database" "$put_aside"
  mv "$(copy_of "$number")" "$database"
  rm -f "$STATE/coordinator/coordinator.running"
  warn "version $1 had converted the coordinator's database; version $2 gets its copy of $since back. What was stored \
since then is lost to it: jobs, tokens, revocations, secrets. It is kept in $put_aside; remove that once all is well"
}

# After a way back that did not end well: the newer version goes on with its own database.
put_database_back() {
  move_database "$database" "$(copy_of "$number")"
  move_database "$put_aside" "$database"
  rm -f "$STATE/coordinator/coordinator.running"
  warn "the database of version $switched_from is in its place again"
}

# With its log of what is not in the file yet.
move_database() {
  for part in -wal -shm ''; do
    if [ -e "$1$part" ]; then mv "$1$part" "$2$part"; else rm -f "$2$part"; fi
  done
}

# ---- services

is_beside() { case " $BESIDE " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

has_systemd() { [ -d /run/systemd/system ]; }

# Those of all roles that are installed here: they share the version. Relay and depot come with the coordinator.
install_units() {
  reload=
  for each in $SERVICES; do
    unit=muster-$each.service
    of=$each
    if is_beside "$each"; then of=coordinator; fi
    if [ "$of" != "$role" ] && [ ! -e "$UNITS/$unit" ]; then continue; fi
    if [ ! -e "$PREFIX/current/units/$unit" ]; then
      remove_unit "$unit" # a version from before it was there
      continue
    fi
    if cmp -s "$PREFIX/current/units/$unit" "$UNITS/$unit"; then continue; fi
    cp "$PREFIX/current/units/$unit" "$UNITS/.$unit.new"
    mv "$UNITS/.$unit.new" "$UNITS/$unit"
    change "wrote $UNITS/$unit"
    reload=1 service_changed=1
  done
  if [ -n "$reload" ] && has_systemd; then systemctl daemon-reload; fi
}

start_service() {
  unit=muster-$role.service
  case $role in
    agent | console)
      if ! grep -q '^ *coordinator *=' "$ETC/$role.toml"; then
        say "not started: say in $ETC/$role.toml where the coordinator is, then run this again"
        return
      fi ;;
  esac
  has_systemd || fail "this machine does not run systemd; use --no-start and start $LINKS/muster-$role by yourself"
  if ! systemctl -q is-enabled "$unit" 2>/dev/null; then
    systemctl -q enable "$unit"
    change "enabled $unit"
  fi
  if [ -n "$switched_from" ]; then
    restart_all || refuse_start
    change "restarted $unit"
  elif [ -n "$service_changed" ] || [ -n "$tree_changed" ] || ! systemctl -q is-active "$unit"; then
    systemctl restart "$unit" || refuse_start
    change "started $unit"
  fi
  for each in $BESIDE; do start_beside "muster-$each.service"; done
  switched_from=
  forget_token
}

# After the coordinator, which it needs; a fleet without it does everything but what the program is for.
start_beside() {
  if [ "$role" != coordinator ] || [ ! -e "$UNITS/$1" ]; then return; fi
  if ! systemctl -q is-enabled "$1" 2>/dev/null; then
    systemctl -q enable "$1"
    change "enabled $1"
  fi
  fresh=
  # `restart_all` has restarted it otherwise.
  if [ -z "$switched_from" ] && [ -n "$service_changed$tree_changed" ]; then fresh=1; fi
  if [ -n "$fresh" ] || ! systemctl -q is-active "$1"; then
    if systemctl restart "$1"; then
      change "started $1"
    else
      warn "$1 does not start; journalctl -u $1 tells why"
    fi
  fi
}

restart_all() {
  for each in $SERVICES; do
    unit=muster-$each.service
    if [ -e "$UNITS/$unit" ] && { [ "$each" = "$role" ] || [ "$each" = "$stopped" ] || systemctl -q is-active "$unit"; }; then
      systemctl restart "$unit" || return 1
    fi
  done
}

refuse_start() {
  unit=muster-$role.service
  warn "$unit does not start:"
  journalctl -u "$unit" -n 15 --no-pager -o cat >&2 || true
  if [ -z "$switched_from" ]; then
    systemctl -q disable --now "$unit" || true
    warn "it is installed but neither enabled nor started; put right what it says and run this again"
  fi
  exit 1
}

# The token has done its work as soon as the node has joined.
forget_token() {
  if [ "$role" != agent ] || [ ! -e "$ETC/join-token" ]; then return; fi
  tries=0
  while [ ! -e "$STATE/agent/trust/node.json" ] && [ $tries -lt 10 ]; do
    tries=$((tries + 1))
    sleep 1
  done
  if [ -e "$STATE/agent/trust/node.json" ]; then
    rm -f "$ETC/join-token"
    change "the node has joined; removed $ETC/join-token"
  fi
}

# ---- removing

remove_role() {
  if [ "$role" = coordinator ]; then
    for each in $BESIDE; do remove_unit "muster-$each.service"; done
  fi
  if [ "$role" != cli ]; then remove_unit "muster-$role.service"; fi
  if [ -n "$purge" ] && [ "$role" != cli ]; then purge_role; fi
  for each in agent coordinator console; do
    if [ -e "$UNITS/muster-$each.service" ]; then
      say "the programs stay: muster-$each needs them"
      return
    fi
  done
  for program in $PROGRAMS; do
    case $(readlink "$LINKS/$program" 2>/dev/null) in
      "$PREFIX"/*) rm -f "$LINKS/$program" && changed=1 ;;
    esac
  done
  for each in "$PREFIX"/[0-9]* "$PREFIX/current" "$PREFIX/previous"; do
    if [ -e "$each" ] || [ -L "$each" ]; then
      rm -rf "$each"
      change "removed $each"
    fi
  done
  rm -f "$PREFIX/.lock" "$PREFIX/.install.log" "$PREFIX"/.copies.*
  rmdir "$PREFIX" 2>/dev/null || true
}

remove_unit() {
  if [ ! -e "$UNITS/$1" ]; then return; fi
  if has_systemd; then
    # Now nothing shall outlive it.
    mkdir -p "/run/systemd/system/$1.d"
    printf '[Service]\nKillMode=control-group\n' >"/run/systemd/system/$1.d/removal.conf"
    systemctl daemon-reload
    systemctl -q disable --now "$1" || true
    rm -rf "/run/systemd/system/$1.d"
  fi
  rm -f "$UNITS/$1"
  if [ "$1" = muster-agent.service ]; then rm -rf /run/muster; fi # secrets of executions that have ended now
  if has_systemd; then systemctl daemon-reload; fi
  change "removed $1"
}

purge_role() {
  if [ "$role" = agent ] && command -v docker >/dev/null; then
    containers=$(docker ps -aq --filter label=muster.execution 2>/dev/null || true)
    # shellcheck disable=SC2086 # ids
    if [ -n "$containers" ]; then docker rm -f $containers >/dev/null && change "removed containers of jobs"; fi
  fi
  for each in "$STATE/$role" "$ETC/$role.toml"; do
    if [ -e "$each" ]; then
      rm -rf "$each"
      change "removed $each"
    fi
  done
  case $role in
    agent)
      rm -f "$ETC/join-token"
      drop_user muster-agent
      drop_user muster-job ;;
    console)
      rm -f "$ETC/authority.pem" # its copy of the certificate that it believes
      drop_user muster-console ;;
    coordinator)
      for each in $BESIDE; do rm -f "$ETC/$each.toml"; done
      drop_user muster ;;
  esac
  for each in agent coordinator console; do
    if [ -e "$ETC/$each.toml" ]; then keeps_settings=1; fi
  done
  if [ -z "$keeps_settings" ]; then rm -f "$ETC/bundle-signers"; fi
  rmdir "$ETC" "$STATE" 2>/dev/null || true
}

drop_user() {
  if id "$1" >/dev/null 2>&1; then
    userdel "$1" || warn "the user $1 is still there; something may run with it"
    changed=1
  fi
}

main "$@"
