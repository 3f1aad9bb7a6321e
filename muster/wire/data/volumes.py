"""Volumes that nodes keep: what agents tell of them, the order to remove one, and what people see."""

from muster.domain.data.volume import (
    KeptVolume,
    KeptVolumeNews,
    KeptVolumeView,
    RemovalOutcome,
    RemovedVolume,
    VolumeId,
    VolumeRemoval,
)
from muster.rpc.v1 import agents_pb2, data_pb2
from muster.wire import checks


def kept_volume_to_wire(volume: KeptVolume) -> agents_pb2.KeptVolume:
    """What an agent tells of a volume that its node keeps."""
    return agents_pb2.KeptVolume(
        project=volume.id.project,
        name=volume.id.name,
        bytes=volume.bytes,
        used_at=checks.timestamp(volume.used_at),
    )


def kept_volume_from_wire(message: agents_pb2.KeptVolume) -> KeptVolume:
    """What an agent tells of a volume that its node keeps; raises WireError."""
    checks.require(message, "used_at")
    return KeptVolume(
        id=_volume(message.project, message.name, "KeptVolume"),
        bytes=checks.size(message.bytes, "KeptVolume.bytes"),
        used_at=checks.moment(message.used_at, "KeptVolume.used_at"),
    )


def kept_volume_news_to_wire(news: KeptVolumeNews) -> agents_pb2.KeptVolumes:
    """What has changed of the volumes that a node keeps."""
    return agents_pb2.KeptVolumes(
        volumes=map(kept_volume_to_wire, news.volumes),
        gone=(agents_pb2.KeptVolume(project=each.project, name=each.name) for each in news.gone),
    )


def kept_volume_news_from_wire(message: agents_pb2.KeptVolumes) -> KeptVolumeNews:
    """What has changed of the volumes that a node keeps; raises WireError."""
    checks.few(message.volumes, "KeptVolumes.volumes")
    checks.few(message.gone, "KeptVolumes.gone")
    return KeptVolumeNews(
        volumes=tuple(map(kept_volume_from_wire, message.volumes)),
        gone=tuple(_volume(each.project, each.name, "KeptVolume") for each in message.gone),
    )


def volume_removal_to_wire(order: VolumeRemoval) -> agents_pb2.VolumeRemoval:
    """The order to remove a kept volume from a node."""
    return agents_pb2.VolumeRemoval(number=order.number, project=order.volume.project, name=order.volume.name)


def volume_removal_from_wire(message: agents_pb2.VolumeRemoval) -> VolumeRemoval:
    """The order to remove a kept volume from a node; raises WireError."""
    return VolumeRemoval(
        number=checks.identifier(message.number, "VolumeRemoval.number"),
        volume=_volume(message.project, message.name, "VolumeRemoval"),
    )


def removed_volume_to_wire(answer: RemovedVolume) -> agents_pb2.RemovedVolume:
    """An agent's answer to the order to remove a kept volume."""
    return agents_pb2.RemovedVolume(number=answer.number, outcome=answer.outcome, why=answer.why)


def removed_volume_from_wire(message: agents_pb2.RemovedVolume) -> RemovedVolume:
    """An agent's answer to the order to remove a kept volume; raises WireError."""
    return RemovedVolume(
        number=checks.identifier(message.number, "RemovedVolume.number"),
        outcome=checks.word(RemovalOutcome, message.outcome, "RemovedVolume.outcome"),
        why=checks.message(message.why),
    )


def volume_view_to_wire(view: KeptVolumeView) -> data_pb2.VolumeOfNode:
    """A volume that a node keeps, as people see it."""
    return data_pb2.VolumeOfNode(
        node=view.node,
        project=view.project,
        name=view.name,
        bytes=view.bytes,
        used_at=checks.timestamp(view.used_at),
        jobs=view.jobs,
        connected=view.connected,
    )


def volume_view_from_wire(message: data_pb2.VolumeOfNode) -> KeptVolumeView:
    """A volume that a node keeps, as people see it; raises WireError."""
    checks.require(message, "used_at")
    volume = _volume(message.project, message.name, "VolumeOfNode")
    return KeptVolumeView(
        node=checks.identifier(message.node, "VolumeOfNode.node"),
        project=volume.project,
        name=volume.name,
        bytes=checks.size(message.bytes, "VolumeOfNode.bytes"),
        used_at=checks.moment(message.used_at, "VolumeOfNode.used_at"),
        jobs=tuple(checks.identifier(each, "VolumeOfNode.jobs") for each in message.jobs),
        connected=message.connected,
    )


def named_volume(node: str, volume: VolumeId) -> data_pb2.NamedVolume:
    """The name of one volume of one node."""
    return data_pb2.NamedVolume(node=node, project=volume.project, name=volume.name)


def volume_named(message: data_pb2.NamedVolume) -> tuple[str, VolumeId]:
    """The name of one volume of one node; raises WireError."""
    node = checks.identifier(message.node, "NamedVolume.node")
    return node, _volume(message.project, message.name, "NamedVolume")


def _volume(project: str, name: str, where: str) -> VolumeId:
    return VolumeId(checks.label(project, f"{where}.project"), checks.label(name, f"{where}.name"))
