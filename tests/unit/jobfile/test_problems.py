"""What a person reads about a wrong job file, to the letter."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from muster.jobfile import JobFileError, Problem, load_job

NAMES = "1 to 63 lower-case letters, digits and hyphens, with no hyphen at the ends"
PORTS = "a word of at most 15 lower-case letters, digits and hyphens that begins with a letter"
NEEDS_IMAGE = "needs an image: a plain process cannot have it"
RESERVED = "is set by Muster for every execution; remove it, or use another name"
NO_VARIABLE = "is no name of a variable: letters, digits and _, not beginning with a digit"
LIMITS = "core, cpu, data, fsize, locks, memlock, msgqueue, nice, nofile, nproc, rss, rtprio, rttime, sigpending, stack"
DIRECTLY = "unknown key; write cpus, memory and gpus directly below resources: each execution gets what it asks for"
BESIDE = "unknown key; exit codes stand beside restarts: exit_codes: {restart: 1-255, fail: 2}"
AT_THE_TOP = "unknown key here; it belongs to the job as a whole, so write it at the top of the file"
NOTHING = 'has no value; give one, or remove the key (an empty text is "")'


def complaint(text: str, base: Path | None = None) -> str:
    with pytest.raises(JobFileError) as refusal:
        load_job(text, "job.yaml", base=base)
    return str(refusal.value)


def test_a_misspelt_key_is_shown_with_its_line_a_caret_and_what_was_meant() -> None:
    text = "name: a\ncommand: x\nresources:\n    gpu_modle: H100\n"
    assert complaint(text) == (
        'job.yaml:4:5: resources.gpu_modle: unknown key; did you mean "gpu_model"?\n        gpu_modle: H100\n        ^'
    )


def test_all_problems_are_told_at_once_in_the_order_of_the_file() -> None:
    text = dedent("""\
        name: Llama
        comand: [python, train.py]
        workers: four
        ports:
          - name: rdzv
            port: 99999
        """)
    assert complaint(text) == dedent("""\
        job.yaml:1:7: name: must be 1 to 63 lower-case letters, digits and hyphens, with no hyphen at the ends, \
not "Llama"; did you mean "llama"?
            name: Llama
                  ^
        job.yaml:2:1: comand: unknown key; did you mean "command"?
            comand: [python, train.py]
            ^
        job.yaml:3:10: workers: must be a whole number, not "four"
            workers: four
                     ^
        job.yaml:6:11: ports[0].port: must be at most 65535, not 99999
                port: 99999
                      ^""")


def test_codes_of_success_are_reserved_and_the_message_says_so() -> None:
    assert complaint('name: a\ncommand: x\nexit_codes: {success: "0,3"}') == (
        "job.yaml:3:14: exit_codes.success: is reserved for workflows and not accepted yet: exit code 0 alone is "
        'success today\n    exit_codes: {success: "0,3"}\n                 ^'
    )


def test_restarts_without_a_pause_are_refused() -> None:
    assert complaint("name: a\ncommand: x\nrestarts: {backoff: 1ms}") == (
        "job.yaml:3:21: restarts.backoff: is 0.001s; the least is 1s\n"
        "    restarts: {backoff: 1ms}\n                        ^"
    )


@pytest.mark.parametrize("form", ["workers: 80", "roles: [{name: a}, {name: b, count: 79}]"])
def test_more_files_than_a_node_can_take_for_all_of_its_executions_are_refused(form: str) -> None:
    text = f"name: a\ncommand: [x]\nresources: {{cpus: 0.1}}\nfiles: [{{path: f, content: {'x' * 500_000}}}]\n{form}\n"
    message = complaint(text).splitlines()[0]
    assert re.search(r"role (worker|b) has 0\.5 MiB of files, variables and command, and (80|79) of its exec", message)


def test_a_long_command_counts_for_all_of_its_executions() -> None:
    text = f"name: a\ncommand: [{', '.join(['x' * 100_000] * 5)}]\nresources: {{cpus: 0.1}}\nworkers: 80\n"
    assert "role worker has 0.5 MiB of files, variables and command" in complaint(text)


def test_problems_are_values() -> None:
    with pytest.raises(JobFileError) as refusal:
        load_job("name: a\ncommand: x\nworkrs: 2", "job.yaml")
    assert refusal.value.problems == (
        Problem(line=3, column=1, field="workrs", message="unknown key", suggestion="workers"),
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        # keys
        ("replicas: 3", '3:1: replicas: unknown key; did you mean "workers"?'),
        ("gpus: 8", '3:1: gpus: unknown key; did you mean "resources.gpus"?'),
        ("check_in: 8m", '3:1: check_in: unknown key; did you mean "timeouts.check_in"?'),
        ("environment: {}", '3:1: environment: unknown key; did you mean "env"?'),
        ("zzz: 1", "3:1: zzz: unknown key"),
        ("run: b", '3:1: run: unknown key; did you mean "command"?'),
        ("script: b", '3:1: script: unknown key; did you mean "command"?'),
        ("nodes: 2", '3:1: nodes: unknown key; did you mean "workers"?'),
        ("parallelism: 2", '3:1: parallelism: unknown key; did you mean "workers"?'),
        ("max_duration: 2h", '3:1: max_duration: unknown key; did you mean "timeouts.run"?'),
        ("gpu_type: H100", '3:1: gpu_type: unknown key; did you mean "resources.gpu_model"?'),
        ("resources: {gpu_type: H100}", '3:13: resources.gpu_type: unknown key; did you mean "gpu_model"?'),
        (
            "resources: {limits: {gpus: 1}}",
            f"3:13: resources.limits: {DIRECTLY}",
        ),
        (
            "restarts: {fail_on: 3}",
            f"3:12: restarts.fail_on: {BESIDE}",
        ),
        (
            "roles: [{name: b, priority: 3}]",
            f"3:19: roles[0].priority: {AT_THE_TOP}",
        ),
        ("roles: [{name: b, workers: 2}]", '3:19: roles[0].workers: unknown key; did you mean "count"?'),
        ("ports: [{name: x, prt: 5}]", '3:19: ports[0].prt: unknown key; did you mean "port"?'),
        ('"a b": 1', '3:1: ["a b"]: unknown key'),
        # kinds of values
        ("resources: 8", "3:12: resources: must be a map, not 8; write it like resources: {gpus: 8, memory: 64Gi}"),
        ("resources:", "3:1: resources: must be a map, not nothing; write it like resources: {gpus: 8, memory: 64Gi}"),
        ("env: [A]", '3:1: env: must be a map, not a list; write it like env: {NAME: "value"}'),
        ("ports: rdzv", '3:8: ports: must be a list, not "rdzv"'),
        ("workers: [1]", "3:1: workers: must be a single value, not a list"),
        ("workers: 2.0", "3:10: workers: must be a whole number, not 2.0"),
        ('workers: "2"', '3:10: workers: must be a whole number without quotes, not "2"'),
        ("workers: true", "3:10: workers: must be a whole number, not true"),
        ("workers:", f"3:1: workers: {NOTHING}"),
        ("image: ~", f"3:8: image: {NOTHING}"),
        # sizes of the job
        ("workers: 0", "3:10: workers: must be at least 1, not 0"),
        ("workers: -1", "3:10: workers: must be at least 1, not -1"),
        ("workers: 10001", "3:10: workers: must be at most 10000, not 10001"),
        ("priority: 1001", "3:11: priority: must be at most 1000, not 1001"),
        ("priority: -1001", "3:11: priority: must be at least -1000, not -1001"),
        ("max_per_node: 0", "3:15: max_per_node: must be at least 1, not 0"),
        ("resources: {gpus: 65}", "3:19: resources.gpus: must be at most 64, not 65"),
        ("resources: {gpus: -1}", "3:19: resources.gpus: must be at least 0, not -1"),
        # choices
        ("network: hots", '3:10: network: must be host or bridge, not "hots"; did you mean "host"?'),
        ("success: any", '3:10: success: must be all, rank0 or the name of a role, not "any"'),
        ("pull: Missing", '3:7: pull: must be always, missing or never, not "Missing"; did you mean "missing"?'),
        ("on_disconnect: kep", '3:16: on_disconnect: must be keep or stop, not "kep"; did you mean "keep"?'),
        ("lost_after: 5m", '3:1: lost_after: unknown key; did you mean "timeouts.lost_after"?'),
        ("placement: [pack]", "3:1: placement: must be a single value, not a list"),
        # quantities
        (
            "resources: {memory: 0}",
            "3:21: resources.memory: must be above zero: a size such as 16Gi, 500M or 1.5G, or a number of bytes",
        ),
        ("resources: {memory: -1}", '3:21: resources.memory: must be above zero, not "-1"'),
        (
            "resources: {memory: 1Gx}",
            '3:21: resources.memory: has the unknown unit "Gx"; there are k, M, G, T, P, Ki, Mi, Gi, Ti, Pi',
        ),
        (
            "resources: {memory: 16}",
            '3:21: resources.memory: is 16 bytes; the least is 6Mi; did you mean "16Gi"?',
        ),
        (
            "resources: {cpus: .nan}",
            '3:19: resources.cpus: must be a number of CPUs such as 2, 0.5 or 500m, not ".nan"',
        ),
        (
            "resources: {cpus: true}",
            "3:19: resources.cpus: must be a number of CPUs such as 2, 0.5 or 500m, not true",
        ),
        (
            "timeouts: {grace: soon}",
            '3:19: timeouts.grace: must be a duration such as 90s, 10m or 1h30m, or a number of seconds, not "soon"',
        ),
        ("timeouts: {lost_after: 59s}", "3:24: timeouts.lost_after: is 59s; the least is 1m"),
        ("timeouts: {lost_after: 8d}", "3:24: timeouts.lost_after: is 8d; the most is 7d"),
        # names
        ("roles: [{name: A_b}]", f'3:16: roles[0].name: must be {NAMES}, not "A_b"; did you mean "a-b"?'),
        ("ports: [9100]", "3:9: ports[0]: must be a name, or a map with name and port, not 9100"),
        ("ports: [Rdzv_1]", f'3:9: ports[0]: must be {PORTS}, not "Rdzv_1"; did you mean "rdzv-1"?'),
        ("ports: [a, {name: a}]", '3:19: ports[1].name: "a" is the port name of ports[0], too'),
        (
            "ports: [{name: a, port: 5}, {name: b, port: 5}]",
            '3:45: ports[1].port: "5" is the port number of ports[0], too',
        ),
        ("ports: [{port: 5}]", "3:9: ports[0].name: is missing"),
        ("ports: [{name: a, port: 0}]", "3:25: ports[0].port: must be at least 1, not 0"),
        ("roles: [{name: b}, {name: b}]", '3:27: roles[1].name: "b" is the role name of roles[0], too'),
        ("roles: []", "3:1: roles: is empty; leave it out, or name at least one role"),
        (
            "node_labels: {a b: c}",
            '3:15: node_labels["a b"]: "a b" is no name of a label: at most 128 letters, digits and ._/- in between',
        ),
        # environment
        (
            "env: {A-B: x}",
            f'3:7: env.A-B: "A-B" {NO_VARIABLE}; did you mean "A_B"?',
        ),
        ("env: {RANK: 3}", f"3:7: env.RANK: {RESERVED}"),
        ("env: {MUSTER_X: 3}", f"3:7: env.MUSTER_X: {RESERVED}"),
        ("env: {A: }", f"3:7: env.A: {NOTHING}"),
        ("env: {A: [b]}", "3:7: env.A: must be a single value, not a list"),
        ('env: {A: "\\0"}', "3:10: env.A: holds a NUL character, which no program can be given"),
        # files
        ("files: [{content: x}]", "3:9: files[0].path: is missing"),
        ("files: [{path: x}]", "3:9: files[0]: needs exactly one of content, content_base64 and source"),
        (
            "files: [{path: x, content: a, source: b}]",
            "3:9: files[0]: needs exactly one of content, content_base64 and source",
        ),
        (
            "files: [{path: ../x, content: a}]",
            '3:16: files[0].path: must be the path of a file, absolute or below the working directory, not "../x"',
        ),
        (
            "files: [{path: /muster/config/hosts, content: a}]",
            '3:16: files[0].path: "/muster/config/hosts" is in /muster, which Muster fills itself',
        ),
        (
            f"files: [{{path: {'a/' * 1000}x, content: a}}]",
            '3:16: files[0].path: leads through more than 64 directories: "' + "a/" * 29 + 'a…"',
        ),
        (
            "files: [{path: x, content: a}, {path: x, content: b}]",
            '3:39: files[1].path: "x" is the path of files[0], too',
        ),
        ("files: [{path: x, content_base64: '?'}]", "3:35: files[0].content_base64: is not base64"),
        ("files: [{path: x, content: }]", f"3:19: files[0].content: {NOTHING}"),
        (
            "files: [{path: x, content: a, executable: yes}]",
            '3:43: files[0].executable: must be true or false, not "yes"; did you mean "true"?',
        ),
        (
            "files: [{path: x, source: y}]",
            "3:27: files[0].source: cannot be read here; give the content instead",
        ),
        # what needs an image
        ("mounts: [/a:/b]", f"3:1: mounts: {NEEDS_IMAGE}"),
        ("pull: always", f"3:7: pull: {NEEDS_IMAGE}"),
        ("entrypoint: []", f"3:1: entrypoint: {NEEDS_IMAGE}"),
        ("user: root", f"3:7: user: {NEEDS_IMAGE}"),
        ("ulimits: {core: 0}", f"3:1: ulimits: {NEEDS_IMAGE}"),
        ("security: {privileged: true}", f"3:24: security.privileged: {NEEDS_IMAGE}"),
        ("resources: {shm: 1Gi}", f"3:18: resources.shm: {NEEDS_IMAGE}"),
        ("network: bridge", "3:10: network: bridge needs an image"),
        # roles
        (
            "roles: [{name: a}]\nworkers: 2",
            "4:10: workers: stands beside roles; give each role its count instead",
        ),
        (
            "roles: [{name: a, count: 6000}, {name: b, count: 4001}]",
            "3:1: roles: has 10001 executions; a job has at most 10000",
        ),
        (
            f"roles: [{{name: {'a' * 62}, count: 11}}]",
            "3:16: roles[0].name: makes host names longer than 63 characters",
        ),
        (
            "roles: [{name: a, image: b}, {name: c, user: root}]",
            f"3:46: roles[1].user: {NEEDS_IMAGE}; role c has none",
        ),
        # paths
        ("workdir: app", '3:10: workdir: must be an absolute path without .., not "app"'),
        ("workdir: /app/..", '3:10: workdir: must be an absolute path without .., not "/app/.."'),
    ],
)
def test_a_wrong_line_is_told_with_its_place(line: str, problem: str) -> None:
    told = complaint(f"name: a\ncommand: x\n{line}\n")
    assert [text for text in told.splitlines() if not text.startswith("  ")] == [f"job.yaml:{problem}"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "image: Acme/train",
            '2:8: image: is not the name of an image (lower case only): "Acme/train"; did you mean "acme/train"?',
        ),
        ("image: a b", '2:8: image: is not the name of an image: "a b"'),
        ("image: ''", "2:8: image: is empty"),
        ("image: b\nuser: a b", '3:7: user: must be a name or number, or both parts of user:group, not "a b"'),
        (
            "image: b\nmounts: [/a]",
            '3:10: mounts[0]: must be /source:/target, /source:/target:rw or a map, not "/a"',
        ),
        (
            "image: b\nmounts: [/a:/b:rx]",
            '3:10: mounts[0]: must be /source:/target, /source:/target:rw or a map, not "/a:/b:rx"',
        ),
        ("image: b\nmounts: [a:/b]", '3:10: mounts[0].source: must be an absolute path without .., not "a"'),
        ("image: b\nmounts: [/a:/]", "3:10: mounts[0]: cannot cover the whole container; mount below /"),
        ("image: b\nmounts: [/a:/muster/]", "3:10: mounts[0]: cannot cover /muster, which Muster fills itself"),
        ("image: b\nmounts: [/a:/c, /b:/c/]", '3:17: mounts[1].target: "/c" is the target of mounts[0], too'),
        (
            "image: b\nulimits: {memlok: 1}",
            f'3:11: ulimits.memlok: "memlok" is no resource limit; there are {LIMITS}; did you mean "memlock"?',
        ),
        ("image: b\nulimits: {core: -2}", "3:17: ulimits.core: must be a whole number from 0 on, or unlimited, not -2"),
        ("image: b\nulimits: {core: {soft: 2, hard: 1}}", "3:11: ulimits.core: has a soft limit above the hard one"),
        ("image: b\nulimits: {core: {soft: 2}}", "3:11: ulimits.core.hard: is missing"),
        ("image: b\ncommand: []", "3:1: command: is empty; leave it out to run the image's own command"),
        ("image: b\ncommand: ''", "3:10: command: is empty; leave it out to run the image's own command"),
        ("image: b\ncommand: ['']", "3:1: command: begins with an empty word; the first word is the program"),
        ("image: b\ncommand: [a, {}]", "3:14: command[1]: must be a single value, not a map"),
        ("image: b\ncommand: {a: b}", "3:1: command: must be a list of words, or one text for the shell, not a map"),
        ("image: b\nentrypoint: sh", '3:13: entrypoint: must be a list, not "sh"'),
        ("workers: 2", "1:1: command: is missing: without an image there is nothing to run"),
        (
            "roles: [{name: a, image: b}, {name: c}]",
            "2:30: roles[1].command: is missing: without an image there is nothing to run",
        ),
    ],
)
def test_a_wrong_container_is_told_with_its_place(line: str, problem: str) -> None:
    told = complaint(f"name: a\n{line}\n")
    assert [text for text in told.splitlines() if not text.startswith("  ")] == [f"job.yaml:{problem}"]


def test_a_job_without_a_name_is_refused() -> None:
    assert complaint("image: b\n") == "job.yaml:1:1: name: is missing\n    image: b\n    ^"


def test_problems_after_the_fiftieth_are_counted() -> None:
    told = complaint("name: a\ncommand: x\n" + "".join(f"x{number}: 1\n" for number in range(60)))
    assert told.splitlines()[-1] == "job.yaml: 10 more problems"


def test_a_long_line_is_shown_around_the_caret() -> None:
    line, caret = complaint(f"{{name: a, command: {'x' * 200}, workers: no, success: all}}").splitlines()[1:]
    assert line[caret.index("^") :].startswith("no, success: all}")
    assert line.startswith("    …x")


def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    told = complaint("name: a\ncommand: x\nfiles: [{path: x, source: y}]", tmp_path)
    assert told.splitlines()[0] == f'job.yaml:3:27: files[0].source: "{tmp_path}/y" is not there'


def test_a_source_that_is_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "y").mkdir()
    told = complaint("name: a\ncommand: x\nfiles: [{path: x, source: y}]", tmp_path)
    assert told.splitlines()[0] == f'job.yaml:3:27: files[0].source: "{tmp_path}/y" is not a plain file'


def test_no_source_is_read_once_the_files_are_too_large(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(2**20 + 1))
    text = "name: a\ncommand: x\nfiles:\n  - {path: a, source: large}\n  - {path: b, source: gone}\n"

    assert complaint(text, tmp_path).splitlines()[0] == (
        "job.yaml:4:5: files[0]: makes the files of the job larger than 1024 KiB in all"
    )
    assert "files[1]" not in complaint(text, tmp_path)


def test_a_source_that_is_not_there_keeps_its_place_among_the_files(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(2**20 + 1))
    text = "name: a\ncommand: x\nfiles:\n  - {path: a, source: gone}\n  - {path: b, source: large}\n"

    told = complaint(text, tmp_path)
    assert "files[0].source: " in told
    assert "files[1]: makes the files of the job larger than 1024 KiB in all" in told


def test_files_larger_than_the_limit_in_all_are_refused_where_they_pass_it(tmp_path: Path) -> None:
    (tmp_path / "half").write_bytes(bytes(2**19))
    text = dedent("""\
        name: a
        command: x
        files:
          - {path: a, source: half}
          - {path: b, source: half}
          - {path: c, content: c}
        """)
    assert complaint(text, tmp_path) == (
        "job.yaml:6:5: files[2]: makes the files of the job larger than 1024 KiB in all\n"
        "      - {path: c, content: c}\n"
        "        ^"
    )
