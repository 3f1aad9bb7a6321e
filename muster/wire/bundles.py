"""Bundles that a coordinator keeps, on the wire."""

from muster.domain.fleet.bundle import KeptBundle
from muster.rpc.v1 import bundles_pb2 as pb

READY = "muster-ready"
"""Among the first metadata of an answer to Put: the coordinator waits for the pieces. Whoever sends them before that
hears now and then only that the call ended, not why it was refused (https://github.com/grpc/grpc/issues/36066)."""


def bundle_to_wire(bundle: KeptBundle) -> pb.Bundle:
    """The bundle as a message."""
    return pb.Bundle(
        name=bundle.name,
        size=bundle.size,
        sha256=bundle.sha256,
        version=bundle.version,
        platforms=bundle.platforms,
        signer=bundle.signer,
    )


def bundle_from_wire(message: pb.Bundle) -> KeptBundle:
    """Out of a message."""
    return KeptBundle(
        name=message.name,
        size=message.size,
        sha256=message.sha256,
        version=message.version,
        platforms=tuple(message.platforms),
        signer=message.signer,
    )
