"""Addresses of the link itself, at which clouds give credentials to whoever asks."""

from ipaddress import IPv6Address, ip_address

_METADATA = IPv6Address("fd00:ec2::254")


def leads_to_link(shown: str, address: str) -> str:
    """A sentence on what leads to such an address."""
    return f"{shown} leads to {address.partition('%')[0]}, an address of the link itself, from which nothing is fetched"


def is_of_link(address: str) -> bool:
    """Whether a numeric address is one from which nothing is fetched for a job."""
    found = ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return (mapped or found).is_link_local or found == _METADATA
