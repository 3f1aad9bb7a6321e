"""Images that agents have pulled: what they tell of them, the order to take some away, and what people see."""

from collections.abc import Iterable, Sequence

from muster.domain.data.kept.image import (
    MOST_IMAGES_NAMED,
    MOST_NAMES_TOLD,
    ClearedImages,
    ClearOutcome,
    ImageClearance,
    ImageFate,
    ImageNews,
    ImageView,
    ToldImage,
)
from muster.rpc.v1 import agents_pb2, model_pb2, nodes_pb2
from muster.wire import checks
from muster.wire.checks import WireError


def told_image_to_wire(image: ToldImage) -> agents_pb2.PulledImage:
    """What an agent tells of an image that it has pulled."""
    return agents_pb2.PulledImage(
        id=image.id, names=image.names, bytes=image.bytes, used_at=checks.timestamp(image.used_at)
    )


def told_image_from_wire(message: agents_pb2.PulledImage) -> ToldImage:
    """What an agent tells of an image that it has pulled; raises WireError."""
    checks.require(message, "used_at")
    return ToldImage(
        id=_word(message.id, "PulledImage.id"),
        names=_names(message.names, "PulledImage.names"),
        bytes=checks.size(message.bytes, "PulledImage.bytes"),
        used_at=checks.moment(message.used_at, "PulledImage.used_at"),
    )


def image_news_to_wire(news: ImageNews) -> agents_pb2.PulledImages:
    """What has changed of the images that an agent has pulled."""
    return agents_pb2.PulledImages(images=map(told_image_to_wire, news.images), gone=news.gone)


def image_news_from_wire(message: agents_pb2.PulledImages) -> ImageNews:
    """What has changed of the images that an agent has pulled; raises WireError."""
    checks.few(message.images, "PulledImages.images")
    checks.few(message.gone, "PulledImages.gone")
    return ImageNews(
        images=tuple(map(told_image_from_wire, message.images)),
        gone=tuple(_word(each, "PulledImages.gone") for each in message.gone),
    )


def image_clearance_to_wire(order: ImageClearance) -> agents_pb2.ImageClearance:
    """The order to take images away from a node."""
    return agents_pb2.ImageClearance(number=order.number, images=order.images)


def image_clearance_from_wire(message: agents_pb2.ImageClearance) -> ImageClearance:
    """The order to take images away from a node; raises WireError."""
    return ImageClearance(
        number=checks.identifier(message.number, "ImageClearance.number"),
        images=images_named(message.images, "ImageClearance.images"),
    )


def image_fate_to_wire(fate: ImageFate) -> model_pb2.ImageFate:
    """What has become of one image that was to go."""
    return model_pb2.ImageFate(image=fate.image, outcome=fate.outcome, bytes=fate.bytes, why=fate.why)


def image_fate_from_wire(message: model_pb2.ImageFate) -> ImageFate:
    """What has become of one image that was to go; raises WireError."""
    return ImageFate(
        image=_word(message.image, "ImageFate.image"),
        outcome=checks.word(ClearOutcome, message.outcome, "ImageFate.outcome"),
        bytes=checks.size(message.bytes, "ImageFate.bytes"),
        why=checks.message(message.why),
    )


def cleared_images_to_wire(answer: ClearedImages) -> agents_pb2.ClearedImages:
    """An agent's answer to the order to take images away."""
    return agents_pb2.ClearedImages(number=answer.number, fates=map(image_fate_to_wire, answer.fates))


def cleared_images_from_wire(message: agents_pb2.ClearedImages) -> ClearedImages:
    """An agent's answer to the order to take images away; raises WireError."""
    checks.few(message.fates, "ClearedImages.fates")
    return ClearedImages(
        number=checks.identifier(message.number, "ClearedImages.number"),
        fates=tuple(map(image_fate_from_wire, message.fates)),
    )


def image_view_to_wire(view: ImageView) -> nodes_pb2.ImageOfNode:
    """An image that the agent of a node has pulled, as people see it."""
    return nodes_pb2.ImageOfNode(
        node=view.node,
        id=view.id,
        names=view.names,
        bytes=view.bytes,
        used_at=checks.timestamp(view.used_at),
        jobs=view.jobs,
        connected=view.connected,
    )


def image_view_from_wire(message: nodes_pb2.ImageOfNode) -> ImageView:
    """An image that the agent of a node has pulled, as people see it; raises WireError."""
    checks.require(message, "used_at")
    return ImageView(
        node=checks.identifier(message.node, "ImageOfNode.node"),
        id=_word(message.id, "ImageOfNode.id"),
        names=_names(message.names, "ImageOfNode.names"),
        bytes=checks.size(message.bytes, "ImageOfNode.bytes"),
        used_at=checks.moment(message.used_at, "ImageOfNode.used_at"),
        jobs=tuple(checks.identifier(each, "ImageOfNode.jobs") for each in message.jobs),
        connected=message.connected,
    )


def images_named(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Names or ids of images that are to go; raises WireError."""
    if len(names) > MOST_IMAGES_NAMED:
        raise WireError(where, f"has {len(names)} entries; at most {MOST_IMAGES_NAMED} are taken")
    return tuple(_word(each, where) for each in names)


def _names(names: Iterable[str], where: str) -> tuple[str, ...]:
    return tuple(_word(each, where) for each in [*names][:MOST_NAMES_TOLD])


def _word(value: str, where: str) -> str:
    """A name or an id as engines write them."""
    if not value:
        raise WireError(where, "is empty")
    return checks.plain(checks.text(value, where), where)
