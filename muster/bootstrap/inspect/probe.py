"""One script of the POSIX shell that tells what a computer is; it needs no Python there and changes nothing.

It is sent over stdin and prints lines `key=value`. Each question has a limit in time; what cannot be found out is left
out, and `muster.bootstrap.inspect.facts` has None for it.
"""

import shlex
from dataclasses import dataclass

from muster.bootstrap.ssh.target import parse_target

PROBE_LIMIT = 90.0
"""Seconds for all questions together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the answers depend on."""

    coordinator: str | None = None
    """`host:port` where clients are served and nodes join; None: none."""
    agents_port: int = 0
    """The port at which agents are served there; 0: not known."""
    address: str | None = None
    """The interface, CIDR or address that the node shall be reached at; None: by the route to the coordinator."""


def script(question: Question) -> str:
    """What a shell is to read."""
    host = ""
    ports: tuple[int, ...] = ()
    if question.coordinator is not None:
        target = parse_target(question.coordinator)
        host, port = target.host, target.port or 7460
        ports = (port, question.agents_port) if question.agents_port else (port,)
    given = [f"coordinator={shlex.quote(host)}", f"wanted={shlex.quote(question.address or '')}"]
    given += [f"ports={shlex.quote(' '.join(map(str, ports)))}"]
    return "\n".join((*given, _SCRIPT))


# A function, so that the shell has read all of it before the first program in it could read from the same stdin.
_SCRIPT = r"""
probe() {
export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
say() { [ -z "$2" ] || printf '%s=%s\n' "$1" "$(printf '%s' "$2" | tr '\n' ' ')"; }
have() { command -v "$1" >/dev/null 2>&1; }
within() { if have timeout; then timeout "$@"; else shift; "$@"; fi; }
first() { head -n 1 2>/dev/null; }

say clock "$(date +%s.%N 2>/dev/null | sed 's/\.*N*$//')"
say uid "$(id -u)"
say hostname "$(hostname 2>/dev/null || cat /proc/sys/kernel/hostname)"
say kernel "$(uname -r)"
say architecture "$(uname -m)"
if [ -r /etc/os-release ]; then
  say os_id "$(. /etc/os-release; printf %s "$ID")"
  say os_version "$(. /etc/os-release; printf %s "$VERSION_ID")"
  say os_name "$(. /etc/os-release; printf %s "$PRETTY_NAME")"
fi
glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/^glibc //')
say glibc "$glibc"
say init "$(cat /proc/1/comm 2>/dev/null)"
[ -d /run/systemd/system ] &&
  say systemd "$(systemctl --version 2>/dev/null | first | sed 's/^systemd \([0-9]*\).*/\1/')"
say memory_kib "$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)"
say ephemeral "$(cat /proc/sys/net/ipv4/ip_local_port_range 2>/dev/null | tr '\t' ' ')"
say reserved "$(cat /proc/sys/net/ipv4/ip_local_reserved_ports 2>/dev/null)"

free() {
  place=$1
  while [ ! -d "$place" ]; do place=$(dirname "$place"); done
  within 5 df -Pk "$place" 2>/dev/null | sed -n '$p' | { read -r _ _ _ left _; printf %s "$left"; }
}
say opt_free_kib "$(free /opt)"
say state_free_kib "$(free /var/lib/muster)"
say shm_kib "$(within 5 df -Pk /dev/shm 2>/dev/null | sed -n '$p' | { read -r _ size _; printf %s "$size"; })"

for python in python3 python3.11 python3.12 python3.13 python3.14; do
  have "$python" || continue
  within 10 "$python" -c '
import sys
try:
    import venv
    able = "venv"
except ImportError:
    able = "bare"
print("python=%s %d.%d.%d %s" % ((sys.executable,) + tuple(sys.version_info[:3]) + (able,)))' 2>/dev/null
done

for tool in tar sha256sum sed grep; do have "$tool" || say missing "$tool"; done

if have docker || [ -S /var/run/docker.sock ]; then
  [ -S /var/run/docker.sock ] && say docker_socket yes
  form='{{.ServerVersion}}|{{.LiveRestoreEnabled}}|{{.CgroupDriver}}|{{.CgroupVersion}}|'
  about=$(within 15 docker info --format "$form{{range \$name, \$_ := .Runtimes}}{{\$name}} {{end}}" 2>&1)
  case $about in
    *'|'*'|'*'|'*'|'*)
      IFS='|' read -r version live driver cgroup runtimes <<END
$about
END
      if [ -n "$version" ]; then
        say docker "$version"; say docker_live_restore "$live"; say docker_cgroup_driver "$driver"
        say docker_cgroup_version "$cgroup"; say docker_runtimes "$runtimes"
      else
        say docker_problem "the Docker Engine does not answer"
      fi ;;
    *) say docker_problem "$(printf '%s' "$about" | sed -n '$p')" ;;
  esac
fi

count=0
for device in /sys/bus/pci/devices/*; do
  [ "$(cat "$device/vendor" 2>/dev/null)" = 0x10de ] || continue
  case $(cat "$device/class") in 0x0300* | 0x0302*) count=$((count + 1)) ;; esac
done
say pci_gpus $count
if have nvidia-smi; then
  told=$(within 30 nvidia-smi --query-gpu=driver_version,name --format=csv,noheader 2>&1)
  if [ $? = 0 ]; then
    printf '%s\n' "$told" | while IFS= read -r line; do say gpu "$line"; done
  else
    say gpu_problem "$(printf '%s' "$told" | sed -n '$p')"
  fi
fi
for tool in nvidia-ctk nvidia-container-cli; do
  have "$tool" && say toolkit "$(within 10 "$tool" --version 2>/dev/null | first | sed 's/.*\(version\|:\) *//')"
done
for file in /etc/cdi/*nvidia* /var/run/cdi/*nvidia*; do [ -e "$file" ] && say cdi "$file"; done
[ -n "$(ls /sys/class/infiniband 2>/dev/null)" ] && say infiniband "$(ls /sys/class/infiniband | tr '\n' ' ')"
say memlock "$(ulimit -l 2>/dev/null)"
have systemctl && say docker_memlock "$(within 5 systemctl show docker -p LimitMEMLOCK --value 2>/dev/null)"

reach() {
  if have bash; then within 4 bash -c ': <"/dev/tcp/$0/$1"' "$1" "$2" 2>/dev/null
  elif have python3; then within 6 python3 -c 'import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2])), 4)' "$1" "$2" 2>/dev/null
  elif have perl; then within 6 perl -MIO::Socket::INET -e \
    'exit !IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => $ARGV[1], Timeout => 4)' "$1" "$2" 2>/dev/null
  elif have nc; then within 6 nc -z -w 4 "$1" "$2" 2>/dev/null </dev/null
  else return 9; fi
}
for port in $ports; do
  reach "$coordinator" "$port"
  case $? in 0) say "reach_$port" open ;; 9) ;; *) say "reach_$port" closed ;; esac
done

device= source=
if have ip; then
  peer=${coordinator:-192.0.2.1}
  case $peer in *[!0-9a-fA-F.:]*) peer=$(getent ahosts "$peer" 2>/dev/null | sed -n '1s/ .*//p') ;; esac
  [ -n "$peer" ] && route=$(ip -o route get "$peer" 2>/dev/null | first)
  device=$(printf '%s' "$route" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
  source=$(printf '%s' "$route" | sed -n 's/.* src \([^ ]*\).*/\1/p')
  if [ -n "$wanted" ] && [ -e "/sys/class/net/$wanted" ]; then device=$wanted
    source=$(ip -o -4 addr show dev "$wanted" 2>/dev/null | first | sed -n 's/.* inet \([0-9.]*\).*/\1/p')
  elif [ -n "$wanted" ]; then
    found=$(ip -o addr show to "$wanted" 2>/dev/null | first)
    if [ -n "$found" ]; then
      device=$(printf '%s' "$found" | { read -r _ name _; printf %s "$name"; })
      source=$(printf '%s' "$found" | sed -n 's/.* inet6* \([^ /]*\).*/\1/p')
    else say wanted_missing "$wanted"; fi
  fi
  case $device in lo)
    # The coordinator runs here; other nodes come by the interface of the default route.
    device=$(ip -o route show default 2>/dev/null | first | sed -n 's/.* dev \([^ ]*\).*/\1/p')
    [ -n "$device" ] && source=$(ip -o -4 addr show dev "$device" | first | sed -n 's/.* inet \([0-9.]*\).*/\1/p') ;;
  esac
else
  device=$(while read -r name to _; do [ "$to" = 00000000 ] && printf %s "$name" && break; done </proc/net/route)
fi
say interface "$device"
say address "$source"
[ -n "$device" ] && say mtu "$(cat "/sys/class/net/$device/mtu" 2>/dev/null)"

if have systemctl; then
  for unit in ufw firewalld nftables; do
    [ "$(within 5 systemctl is-active "$unit" 2>/dev/null)" = active ] && say firewall "$unit"
  done
  say clock_synchronised "$(within 5 timedatectl show -p NTPSynchronized --value 2>/dev/null)"
  say agent_unit "$(within 5 systemctl is-active muster-agent 2>/dev/null)"
fi
if [ "$(id -u)" = 0 ] && have nft; then
  within 5 nft list chains 2>/dev/null | grep -q 'hook input.*policy drop' && say firewall 'input policy drop'
fi
[ -L /opt/muster/current ] && say muster "$(basename "$(readlink /opt/muster/current)")"
if [ -r /etc/muster/agent.toml ]; then
  say config_sha256 "$(sha256sum </etc/muster/agent.toml | sed 's/ .*//')"
  say config_name "$(sed -n 's/^name *= *"\(.*\)"$/\1/p' /etc/muster/agent.toml | first)"
fi
[ -e /var/lib/muster/agent/trust/node.json ] && say joined yes
[ -e /etc/systemd/system/muster-coordinator.service ] &&
  say coordinator_unit "$(systemctl is-active muster-coordinator 2>/dev/null)"
if id muster-job >/dev/null 2>&1; then say job_user "$(id -u muster-job):$(id -g muster-job)"; fi
say done yes
}
probe </dev/null
"""
