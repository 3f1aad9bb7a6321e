"""Sends a file with nothing but obstore, in parts, and says how many milliseconds that took.

Arguments: the address of the store, the bucket, the file.
"""

import sys
import time
from pathlib import Path

import obstore
from obstore.store import S3Store

PART, BESIDE = 8 * 1024 * 1024, 4
"""Bytes of a part, and parts at the same time: those of Muster."""


def main() -> None:
    """Send it once."""
    endpoint, bucket, file = sys.argv[1:]
    began = time.perf_counter()
    store = S3Store(
        bucket,
        endpoint=endpoint,
        region="us-east-1",
        access_key_id="anybody",
        secret_access_key="anything",  # noqa: S106 - that of a store that lets everybody in
        client_options={"allow_http": True},
    )
    obstore.put(store, "plain", Path(file), chunk_size=PART, max_concurrency=BESIDE)
    print((time.perf_counter() - began) * 1000)


if __name__ == "__main__":
    main()
