"""The Docker engine of this node in our own words; the only folder that knows aiodocker and aiohttp."""
