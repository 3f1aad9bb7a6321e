"""Commands and terminals of an execution, as the stock `ssh` has them."""

import asyncio
import os
import shlex
from pathlib import Path

from tests.integration.ssh_hosts import SshHost, at_terminal, held_fifo, line_of

MUCH = os.urandom(20_000_000)
MOST_TAKEN = 16 * 2**20
"""Bytes that ssh, its server and the pipes between them hold together, at most."""

STUCK = """
import os, select, sys
os.set_blocking(1, False)
written = 0
while select.select([], [1], [], 2)[1]:
    written += os.write(1, bytes(65536))
with open("stuck", "w") as told:
    print(written, file=told)
os.set_blocking(1, True)
"""
"""Prints until nobody takes it for two seconds, and tells how much that was."""

HEEDLESS = "trap '' PIPE; while :; do yes; done 2>&1"
"""Goes on printing, whatever it hears of its output."""


async def test_a_command_has_its_outputs_apart_and_its_exit_code(host: SshHost) -> None:
    done = await host.ssh("pwd; echo wrong >&2; exit 7")
    assert (done.code, done.output, done.errors) == (7, f"{host.execution}\n".encode(), "wrong\n")


async def test_what_a_command_reads_comes_back_byte_for_byte(host: SshHost) -> None:
    done = await host.ssh("cat", given=MUCH)
    assert (done.code, done.errors) == (0, "")
    assert done.output == MUCH


async def test_the_end_of_the_input_is_not_the_end_of_the_output(host: SshHost) -> None:
    done = await host.ssh("wc -c; echo after", given=bytes(100_000))
    assert done.output == b"100000\nafter\n"


async def test_a_command_that_reads_nothing_ends_all_the_same(host: SshHost) -> None:
    assert (await host.ssh("exit 5", given=MUCH)).code == 5


async def test_a_shell_without_a_terminal_takes_a_script(host: SshHost) -> None:
    done = await host.run("-T", host.name, given=b"cd /\npwd\nexit 4\n")
    assert (done.code, done.output) == (4, b"/\n")


async def test_a_command_ended_by_a_signal_has_the_code_of_a_shell(host: SshHost) -> None:
    assert (await host.ssh("kill -TERM $$")).code == 143


async def test_variables_are_sent_on_and_those_of_muster_are_not(host: SshHost) -> None:
    done = await host.ssh("echo $LC_PAPER $RANK", "-o", "SetEnv=LC_PAPER=a4 RANK=7")
    assert done.output == b"a4 0\n"
    assert "1 variables of ssh (SendEnv, SetEnv) were not sent on: RANK" in done.errors


async def test_a_command_whose_output_nobody_reads_any_more_ends(host: SshHost) -> None:
    done = await host.piped("yes | head -n 1; exit ${PIPESTATUS[0]}")
    assert (done.code, done.output) == (128 + 13, b"y\n")


async def test_a_command_that_does_not_mind_is_hung_up(host: SshHost) -> None:
    done = await host.piped(f"{shlex.quote(HEEDLESS)} | head -n 1; exit ${{PIPESTATUS[0]}}")
    assert (done.code, done.output) == (255, b"y\n")


async def test_a_command_waits_while_nobody_reads_its_output(host: SshHost) -> None:
    (host.execution / "stuck.py").write_text(STUCK)
    with held_fifo(host.execution / "stuck") as stuck:
        async with host.started(host.name, "python3 stuck.py") as process:
            written = int(await line_of(stuck))
            output, _ = await process.communicate()
    assert 0 < written < MOST_TAKEN
    assert output == bytes(written)


async def test_a_client_waits_while_a_command_does_not_read(host: SshHost, tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    line = "read line < go; wc -c"
    with held_fifo(tmp_path / "stuck") as stuck, held_fifo(host.execution / "go") as go:
        counting = asyncio.create_task(host.piped(shlex.quote(line), before=f"cd {tmp_path}; python3 stuck.py |"))
        written = int(await line_of(stuck))
        os.write(go, b"go\n")
        assert 0 < written < MOST_TAKEN
        assert (await counting).output == b"%d\n" % written


async def test_what_there_is_not_is_said(host: SshHost) -> None:
    done = await host.run("muster-nosuch", "true")
    assert (done.code, done.errors) == (255, "muster: there is no job 'nosuch'; `muster jobs --all` lists them\r\n")
    other = await host.run(f"{host.name}.7", "true")
    assert (other.code, other.errors) == (255, "muster: sleeper has rank 0\r\n")


async def test_a_command_hears_of_the_end_of_ssh(host: SshHost) -> None:
    line = "exec 3>fifo; trap 'echo hung up >&3; exit' HUP; echo begun >&3; while :; do read -t 1 line <>fifo2; done"
    os.mkfifo(host.execution / "fifo2")
    with held_fifo(host.execution / "fifo") as told:
        async with host.started(host.name, line) as process:
            assert await line_of(told) == "begun\n"
            process.terminate()
            assert await line_of(told) == "hung up\n"


async def test_a_terminal_has_its_kind_and_its_size_from_the_start(host: SshHost) -> None:
    async with at_terminal(host, "-t", host.name, "stty size; echo $TERM; exit 3") as person:
        await person.sees(b"33 111\r\nxterm-256color\r\n")
        assert await person.ends() == 3


async def test_a_terminal_gets_another_size(host: SshHost) -> None:
    line = "trap 'stty size; exit 0' WINCH; echo ready; while :; do read -t 1 line; done"
    async with at_terminal(host, "-t", host.name, line) as person:
        await person.sees(b"ready\r\n")
        person.resizes(44, 122)
        await person.sees(b"44 122\r\n")
        assert await person.ends() == 0


async def test_keys_reach_a_shell_and_its_programs(host: SshHost) -> None:
    async with at_terminal(host, host.name) as person:
        person.types(b"PS1=no''w:\r")
        await person.sees(b"now:")
        person.types(b"cat\r")
        await person.sees(b"cat\r\n")
        person.types(b"meow\r")
        await person.sees(b"meow\r\nmeow\r\n")  # Ctrl-C before the shell has begun it would interrupt the shell alone
        person.types(b"\x03")
        await person.sees(b"^C")
        person.types(b"echo $?; exit 9\r")
        await person.sees(b"130\r\n")
        assert await person.ends() == 9


async def test_one_connection_carries_many_sessions(host: SshHost, tmp_path: Path) -> None:
    options = ("-o", "ControlMaster=auto", "-o", f"ControlPath={tmp_path / 'shared'}", "-o", "ControlPersist=yes")
    assert (await host.ssh("echo first", *options)).output == b"first\n"
    try:
        many = await asyncio.gather(*(host.ssh(f"cat; exit {number}", *options, given=b"mine") for number in range(8)))
        assert [(done.code, done.output) for done in many] == [(number, b"mine") for number in range(8)]
    finally:
        await host.run(*options, "-O", "exit", host.name)
