"""Where the server of a repository is."""

import socket

from muster.domain.data.code import GitUrl
from muster.transfer.addresses import is_of_link, leads_to_link
from muster.transfer.git.faults import GitAwayError, GitRefusedError


def address_of(url: GitUrl) -> str:
    """The numeric address to which a connection goes. Raises GitRefusedError for those of the link itself."""
    try:
        found = socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise GitAwayError(f"{url.host} is not found: {error.strerror or error}") from None
    addresses = [str(each[4][0]) for each in found]
    for address in addresses:
        if is_of_link(address):
            raise GitRefusedError(leads_to_link(url.host, address))
    return addresses[0]
