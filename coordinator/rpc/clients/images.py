"""The clients' calls about images of nodes, as gRPC has them."""

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import translated
from coordinator.service.data.images import ImageOperations
from coordinator.service.data.pulls import PullOperations
from muster.rpc.v1 import nodes_pb2 as pb
from muster.rpc.v1 import nodes_pb2_grpc
from muster.wire import checks
from muster.wire.data.image_pulls import image_named, pull_view_to_wire
from muster.wire.data.pulled_images import image_fate_to_wire, image_view_to_wire, images_named


class ImageService(nodes_pb2_grpc.ImageServiceServicer):
    """Translates calls about images of nodes."""

    def __init__(self, images: ImageOperations, pulls: PullOperations) -> None:
        self._images = images
        self._pulls = pulls

    @translated
    async def List(self, request: pb.ListImagesRequest, context: Context) -> pb.ListImagesResponse:
        """The images that agents have pulled."""
        after = (request.after_node, request.after_image) if request.after_image else None
        found, more = await self._images.list(caller(), node=request.node, after=after)
        return pb.ListImagesResponse(images=map(image_view_to_wire, found), more=more)

    @translated
    async def Clear(self, request: pb.ClearImagesRequest, context: Context) -> pb.ClearImagesResponse:
        """Take images away from one node."""
        node = checks.identifier(request.node, "ClearImagesRequest.node")
        images = images_named(request.images, "ClearImagesRequest.images")
        return pb.ClearImagesResponse(fates=map(image_fate_to_wire, await self._images.clear(caller(), node, images)))

    @translated
    async def Pull(self, request: pb.PullImageRequest, context: Context) -> pb.PullImageResponse:
        """Have nodes pull an image."""
        image = image_named(request.image, "PullImageRequest.image")
        checks.few(request.nodes, "PullImageRequest.nodes")
        nodes = [checks.identifier(each, "PullImageRequest.nodes") for each in request.nodes]
        view = await self._pulls.pull(caller(), image, nodes=nodes, pool=request.pool, project=request.project)
        return pb.PullImageResponse(pull=pull_view_to_wire(view))

    @translated
    async def Pulled(self, request: pb.PulledRequest, context: Context) -> pb.PulledResponse:
        """How far a pull is."""
        pull = checks.identifier(request.pull, "PulledRequest.pull")
        return pb.PulledResponse(pull=pull_view_to_wire(await self._pulls.pulled(caller(), pull, request.revision)))
