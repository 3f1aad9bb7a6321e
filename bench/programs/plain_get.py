"""Fetches a file with nothing but obstore, in one stream, and says how many milliseconds that took.

Arguments: the address of the server, the name of the file there, where to write it.
"""

import sys
import time
from pathlib import Path

from obstore.store import HTTPStore


def main() -> None:
    """Fetch it once."""
    server, name, into = sys.argv[1:]
    began = time.perf_counter()
    store = HTTPStore.from_url(server, client_options={"allow_http": True})
    with Path(into).open("wb") as file:
        file.writelines(store.get(name).stream())
    print((time.perf_counter() - began) * 1000)


if __name__ == "__main__":
    main()
