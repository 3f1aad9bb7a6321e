"""Variables by which libraries for communication find the right network interface; a job may replace each of them.

Left alone, most of them guess from the host name, and often guess loopback.
"""

from collections.abc import Mapping
from ipaddress import ip_network

from agent.core.launching.site import LaunchSite, NetworkInterface
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.job import Network, RuntimeKind

CONTAINER_INTERFACE = NetworkInterface(name="eth0")
"""The only interface of a container on a bridge network; no other node has addresses of its subnet."""


def interface_of(who: Assignment, site: LaunchSite) -> NetworkInterface | None:
    """The network interface of an execution by which it reaches its peers; None where its node does not know."""
    return CONTAINER_INTERFACE if who.network is Network.BRIDGE else site.interface


def network_defaults(who: Assignment, address: str, site: LaunchSite) -> Mapping[str, str]:
    """The variables of one execution, which peers reach at `address`.

    To NCCL a name is a prefix, unless an equals sign stands before it; Gloo, TensorPipe and the MPIs take it as it is.
    UCX leaves InfiniBand alone once it is told an interface, so it is told only in containers, which have nothing else.
    """
    interface = interface_of(who, site)
    if interface is None:
        return {"VLLM_HOST_IP": address}
    name = interface.name
    variables = {
        "NCCL_SOCKET_IFNAME": f"={name}",
        "GLOO_SOCKET_IFNAME": name,
        "TP_SOCKET_IFNAME": name,
        "HYDRA_IFACE": name,
        "I_MPI_HYDRA_IFACE": name,
        "FI_TCP_IFACE": name,
        "VLLM_HOST_IP": address,
    }
    if who.role.runtime is RuntimeKind.DOCKER:
        variables["UCX_NET_DEVICES"] = name
    return variables if interface.subnet is None else variables | _open_mpi(interface.subnet)


def _open_mpi(subnet: str) -> dict[str, str]:
    """Open MPI takes a subnet, which is the same on all nodes while the names of interfaces differ.

    Its version 5 gets none for its daemons (PRRTE): they warn of a subnet that they do not find although it is there
    (5.0.11). It does not start when it is told loopback, where all nodes are one machine.
    """
    if ip_network(subnet).is_loopback:
        return {}
    return dict.fromkeys(("OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include"), subnet)
