"""Texts and values that are nearly right, nothing like it, or meant to do harm."""

from random import Random
from typing import Any

from muster.jobfile.document import MAX_FILE_BYTES
from tests.fuzz.messages import TEXTS

DEEP = "[" * 100_000
PIECES = (
    *("name", "command", "image", "workers", "roles", "env", "ports", "timeouts", "resources", "restarts", "files"),
    *("secrets", "security", "mounts", "ulimits", "network", "ring", "worker", "1", "3", "0x1F", "0o17", "1e9", ".inf"),
    *(
        "~",
        "null",
        "yes",
        "no",
        "true",
        "-1",
        "16Gi",
        "1h30m",
        "[a, b]",
        "{a: b}",
        "[",
        "]",
        "{",
        "}",
        "&a",
        "*a",
        "*b",
    ),
    *("<<", "!!str", "!!python/object:os.system", "!x", "|", ">", ">-", "|2", "#", "%YAML 1.1", "%YAML 9" + "9" * 50),
    *(
        "---",
        "...",
        "'",
        '"',
        "\\x",
        "\\U0010ffff",
        "\\UFFFFFFFF",
        "\ud800",
        "\0",
        "\t",
        "\ufeff",
        "\x85",
        "\u2028",
        "?",
    ),
    *("- ", ": ", "\n", "\n  ", "\n    ", "\n- ", " ", ",", "a" * 300, "9" * 400, "0x" + "f" * 400, "1" + ":59" * 40),
)
ODD: tuple[object, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**70,
    1.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    *TEXTS,
    [],
    [1],
    {},
    {"a": 1},
)
LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]\n"
    for n in range(1, 30)
)
BOMBS = {
    "aliases of aliases": LAUGHS,
    "an alias of itself": "a: &a [*a]",
    "nested lists": "[" * 20_000,
    "nested lists that end": "[" * 5_000 + "]" * 5_000,
    "nested maps": "{a: " * 20_000,
    "nested blocks": "".join("  " * n + "a:\n" for n in range(700)),
    "nested dashes": "- " * 50_000 + "x",
    "questions": "? " * 50_000 + "x",
    "nested anchors": "&a " * 50_000,
    "tags": "!a " * 50_000,
    "many keys": "".join(f"k{n}: 1\n" for n in range(60_000)),
    "one key very often": "a: 1\n" * 60_000,
    "a long number": "a: " + "9" * 900_000,
    "a long float": "a: 1." + "9" * 900_000 + "e99999",
    "an exponent": "priority: 1e99999",
    "a long word": "name: " + "a" * 900_000,
    "a long key": "a" * 900_000 + ": 1",
    "spaces": " " * 900_000,
    "line ends": "\n" * 900_000,
    "a comment": "#" * 900_000,
    "quotes": "a: '" + "''" * 400_000,
    "escapes": 'a: "' + "\\x41" * 200_000,
    "folded lines": "a: >\n" + "  x\n\n" * 150_000,
    "documents": "---\n" * 100_000,
    "directives": "%TAG ! x\n" * 50_000,
    "a range of exit codes": "name: a\ncommand: b\nexit_codes: {fail: 0-" + "9" * 3000 + "}",
    "many exit codes": "name: a\ncommand: b\nexit_codes: {fail: '" + "1-255," * 100_000 + "1'}",
    "a long duration": "name: a\ncommand: b\ntimeouts: {run: '" + "1h" * 400_000 + "'}",
    "a long size": "name: a\ncommand: b\nresources: {memory: '" + "1" * 400_000 + "Gi'}",
    "a long command": "name: a\ncommand: '" + "\\ '\"'\"'" * 50_000,
    "an open quote in a command": 'name: a\ncommand: "' + '\\" x ' * 100_000 + '"',
    "variables": "name: a\ncommand: '" + "${a" * 100_000 + "'",
    "more than is read": "a" * (MAX_FILE_BYTES + 1),
}


def changed(valid: bytes, chance: Random) -> bytes:
    """Bytes with a few changes: other ones, some more, some less, some twice."""
    found = bytearray(valid)
    for _ in range(chance.randint(1, 5)):
        at, until = sorted(chance.randint(0, len(found)) for _ in range(2))
        kind = chance.random()
        if kind < 0.5 and found:
            found[min(at, len(found) - 1)] = chance.randint(0, 255)
        elif kind < 0.7:
            found[at:at] = chance.randbytes(chance.choice((1, 2, 40)))
        elif kind < 0.85:
            del found[at : min(until, at + 20)]
        else:
            found[at:at] = found[at:until]
    return bytes(found)


def changed_values(value: Any, chance: Random) -> Any:
    """Plain values with something else in some places."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        other = key if chance.random() < 0.9 else chance.choice(TEXTS)
        rest = {each: it for each, it in value.items() if each != key or chance.random() < 0.9}
        return {**rest, other: changed_values(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        return [*value[:at], changed_values(value[at], chance), *value[at + 1 :]]
    return chance.choice(ODD)
