"""Pulls of images onto nodes: the order to an agent, what it tells of it, and what people see."""

from muster.domain.data.kept.image import ImageClearance
from muster.domain.data.kept.pull import ImagePull, NodePull, PulledHere, PullNews, PullStep, PullView
from muster.domain.fleet.secret import MAX_VALUE
from muster.domain.jobs.image import is_image
from muster.rpc.v1 import agents_pb2, nodes_pb2
from muster.wire import checks
from muster.wire.checks import WireError
from muster.wire.data.pulled_images import image_clearance_from_wire


def image_order_from_wire(message: agents_pb2.CoordinatorMessage) -> ImageClearance | ImagePull:
    """An order about images of a node; raises WireError."""
    if message.WhichOneof("message") == "pull_image":
        return image_pull_from_wire(message.pull_image)
    return image_clearance_from_wire(message.clear_images)


def image_pull_to_wire(order: ImagePull) -> agents_pb2.ImagePull:
    """The order to pull an image onto a node."""
    return agents_pb2.ImagePull(
        number=order.number, image=order.image, username=order.username, password=order.password
    )


def image_pull_from_wire(message: agents_pb2.ImagePull) -> ImagePull:
    """The order to pull an image onto a node; raises WireError."""
    return ImagePull(
        number=checks.identifier(message.number, "ImagePull.number"),
        image=image_named(message.image, "ImagePull.image"),
        username=_value(message.username, "ImagePull.username"),
        password=_value(message.password, "ImagePull.password"),
    )


def pull_news_to_wire(news: PullNews) -> agents_pb2.PullNews:
    """What an agent tells of the order to pull an image."""
    there = news.pulled
    return agents_pb2.PullNews(
        number=news.number,
        step=news.step,
        doing=news.doing,
        why=news.why,
        pulled=None if there is None else agents_pb2.PulledHere(id=there.id, digest=there.digest, bytes=there.bytes),
    )


def pull_news_from_wire(message: agents_pb2.PullNews) -> PullNews:
    """What an agent tells of the order to pull an image; raises WireError."""
    there = message.pulled
    return PullNews(
        number=checks.identifier(message.number, "PullNews.number"),
        step=checks.word(PullStep, message.step, "PullNews.step"),
        doing=checks.message(message.doing),
        why=checks.message(message.why),
        pulled=PulledHere(
            id=_plain(there.id, "PulledHere.id"),
            digest=_plain(there.digest, "PulledHere.digest"),
            bytes=checks.size(there.bytes, "PulledHere.bytes"),
        )
        if message.HasField("pulled")
        else None,
    )


def node_pull_to_wire(view: NodePull) -> nodes_pb2.NodePull:
    """The pull of an image on one node, as people see it."""
    return nodes_pb2.NodePull(
        node=view.node,
        step=view.step,
        doing=view.doing,
        why=view.why,
        id=view.id,
        digest=view.digest,
        bytes=view.bytes,
    )


def node_pull_from_wire(message: nodes_pb2.NodePull) -> NodePull:
    """The pull of an image on one node, as people see it; raises WireError."""
    return NodePull(
        node=checks.identifier(message.node, "NodePull.node"),
        step=checks.word(PullStep, message.step, "NodePull.step"),
        doing=checks.message(message.doing),
        why=checks.message(message.why),
        id=_plain(message.id, "NodePull.id"),
        digest=_plain(message.digest, "NodePull.digest"),
        bytes=checks.size(message.bytes, "NodePull.bytes"),
    )


def pull_view_to_wire(view: PullView) -> nodes_pb2.PullOfImage:
    """The pull of an image on several nodes, as people see it."""
    return nodes_pb2.PullOfImage(
        id=view.id, image=view.image, revision=view.revision, nodes=map(node_pull_to_wire, view.nodes)
    )


def pull_view_from_wire(message: nodes_pb2.PullOfImage) -> PullView:
    """The pull of an image on several nodes, as people see it; raises WireError."""
    return PullView(
        id=checks.identifier(message.id, "PullOfImage.id"),
        image=_plain(message.image, "PullOfImage.image"),
        revision=message.revision,
        nodes=tuple(map(node_pull_from_wire, message.nodes)),
    )


def image_named(name: str, where: str) -> str:
    """The name of an image that can be pulled; raises WireError."""
    if not is_image(name):
        raise WireError(where, f"{checks.message(name)[:80]!r} is not the name of an image")
    return checks.text(name, where)


def _value(value: str, where: str) -> str:
    """A value of a secret, which may be a whole file of keys."""
    if len(value) > MAX_VALUE:
        raise WireError(where, f"has more than {MAX_VALUE} characters")
    return value


def _plain(value: str, where: str) -> str:
    return checks.plain(checks.text(value, where), where)
