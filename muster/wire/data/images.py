"""What names of images were found to mean, on the wire."""

from muster.domain.jobs.image import FoundImage, ImagePass, is_image, is_image_digest
from muster.rpc.v1 import agents_pb2, model_pb2
from muster.wire import checks
from muster.wire.checks import WireError


def found_image_to_wire(found: FoundImage) -> model_pb2.FoundImage:
    """What a name was found to mean."""
    return model_pb2.FoundImage(image=found.image, digest=found.digest, id=found.id)


def found_image_from_wire(message: model_pb2.FoundImage) -> FoundImage:
    """What a name was found to mean; raises WireError."""
    if not is_image(checks.plain(message.image, "FoundImage.image")):
        raise WireError("FoundImage.image", "is no name of an image")
    for field, said in (("digest", message.digest), ("id", message.id)):
        if said and not is_image_digest(said):
            raise WireError(f"FoundImage.{field}", "is no SHA-256 with its name in front")
    if not (message.digest or message.id):
        raise WireError("FoundImage.digest", "is empty, and so is the id")
    return FoundImage(image=message.image, digest=message.digest, id=message.id)


def image_pass_to_wire(shown: ImagePass) -> agents_pb2.ImageResponse:
    """What a node is told of the image of an execution."""
    found = None if shown.found is None else found_image_to_wire(shown.found)
    return agents_pb2.ImageResponse(found=found, finds=shown.finds)


def image_pass_from_wire(message: agents_pb2.ImageResponse) -> ImagePass:
    """What a node is told of the image of an execution; raises WireError."""
    found = found_image_from_wire(message.found) if message.HasField("found") else None
    return ImagePass(found=found, finds=message.finds)
