"""Layers of images: kept on the node, and given to its container engine by a registry on loopback."""
