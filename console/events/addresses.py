"""Addresses to which events may go: none of the console's own network, unless somebody allows it; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

_NAT64 = IPv6Network("64:ff9b::/96")
_V4_BITS = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedPlaces:
    """What is allowed beside the addresses of the open internet."""

    hosts: tuple[str, ...] = ()
    """Patterns of names."""
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "AllowedPlaces":
        """What texts like `10.0.0.0/8` and `*.internal` say."""
        hosts, networks = [], []
        for text in texts:
            try:
                networks.append(ip_network(text))
            except ValueError:
                hosts.append(text.lower())
        return cls(hosts=tuple(hosts), networks=tuple(networks))

    def names(self, host: str) -> bool:
        """Whether a host is allowed by its name, whatever its addresses are."""
        return any(fnmatchcase(host.lower(), pattern) for pattern in self.hosts)

    def lists(self, host: str) -> bool:
        """Whether a host is allowed by its name, or is an address that is."""
        try:
            found = _meant(ip_address(host))
        except ValueError:
            return self.names(host)
        return self.names(host) or any(found in network for network in self.networks)

    def may_reach(self, host: str, address: str) -> bool:
        """Whether events for a host may go to one of its addresses."""
        try:
            found = _meant(ip_address(address.partition("%")[0]))
        except ValueError:
            return False
        if self.names(host) or any(found in network for network in self.networks):
            return True
        return found.is_global and not found.is_multicast


def _meant(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The address to which packets go in the end: addresses of version 6 can stand for those of version 4."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & _V4_BITS)
    return address.ipv4_mapped or address.sixtofour or address
