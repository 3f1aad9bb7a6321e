"""A server such as editors start on a host: it listens on loopback, and keeps sessions when connections break.

A connection begins with `TOKEN SESSION`. Each line after that is answered by the number of lines of the session so far,
and the line.
"""

import asyncio
import secrets
import sys
from collections import Counter

LONGEST_LINE = 2**20


async def main() -> None:
    token = secrets.token_hex(8)
    lines: Counter[str] = Counter()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shown, _, session = (await reader.readline()).decode().strip().partition(" ")
        while shown == token and (line := await reader.readline()):
            lines[session] += 1
            writer.write(b"%d " % lines[session] + line)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=LONGEST_LINE)
    host, port = server.sockets[0].getsockname()
    print(f"token {token}")
    print(f"listening on {host}:{port}", flush=True)
    await server.serve_forever()


if sys.argv[1:] == ["--version"]:
    print("code 1.0")
else:
    asyncio.run(main())
