"""`muster forward --open`: when the browser is opened, and where."""

import sys
from dataclasses import replace
from pathlib import Path

from tests.integration.attaching import SLEEPER, attaching_fleet
from tests.integration.attaching_program import muster
from tests.integration.forwards import forwarding
from tests.integration.programs import PORTS

PORT = PORTS.stop + 1

NOTEBOOK_SERVER = f"""
import http.server, json, os, pathlib, socket
with socket.create_server(("127.0.0.1", {PORT})) as tried:
    for _ in range(2):
        tried.accept()[0].close()
directory = pathlib.Path(os.environ["JUPYTER_RUNTIME_DIR"])
note = {{"port": {PORT}, "base_url": "/", "token": "secret", "secure": False}}
(directory / "jpserver-1.json").write_text(json.dumps(note))
http.server.HTTPServer(("127.0.0.1", {PORT}), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
"""Opens its port to see whether that is free, as Jupyter does; notes its token later, and answers only then."""


async def test_a_server_that_has_only_tried_its_port_is_waited_for_until_it_answers(tmp_path: Path) -> None:
    [role] = SLEEPER.roles
    command = (sys.executable, "-c", NOTEBOOK_SERVER)
    server = replace(SLEEPER, roles=(replace(role, command=command, env={"JUPYTER_RUNTIME_DIR": str(tmp_path)}),))
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running(server)
        async with forwarding(fleet, job, str(PORT)) as forward:
            assert forward.opened == f"http://{forward.address}/?token=secret"
            assert forward.address != f"127.0.0.1:{PORT}"  # which is the server itself, as the job runs here


async def test_a_forward_that_would_lead_to_itself_is_refused(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        code, _, err = await muster(fleet, "forward", job.id, f"{PORT}:{PORT}")
        where = f"the job runs on this machine, where {PORT} is its own port"
        way = f"go there without a forward, or take another one here, as in 0:{PORT}"
        assert (code, err) == (5, f"error: {where}: {way}\n")
