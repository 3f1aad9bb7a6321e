"""A file with options of a program: TOML, whose keys are the long options without their dashes (docs/install.md)."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

OPTION = "--config"


def parse_with_file(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """What was chosen: on the command line, else in the file that `--config` names, else by default.

    Exits with a message that names the file and the key where that file is wrong. A list on the command line stands in
    place of the file's list.
    """
    parser.add_argument(OPTION, type=Path, metavar="FILE", help="options from a TOML file; the command line outweighs")
    options = _options(parser)
    # None says that an option was not given: argparse sets defaults only where there is nothing.
    given = vars(parser.parse_args(arguments, argparse.Namespace(**{each.dest: None for each in options.values()})))
    file: Path | None = given.pop("config")
    written = {} if file is None else _read(parser, file, options)
    defaults = {each.dest: each.default for each in options.values()}
    return argparse.Namespace(**defaults | written | {key: value for key, value in given.items() if value is not None})


def _options(parser: argparse.ArgumentParser) -> Mapping[str, argparse.Action]:
    """All options by their names in the file."""
    found = {}
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list of them
        names = [name.removeprefix("--") for name in action.option_strings if name.startswith("--")]
        if names and action.default is not argparse.SUPPRESS and names != [OPTION.removeprefix("--")]:
            found[names[0]] = action
    return found


def _read(parser: argparse.ArgumentParser, file: Path, options: Mapping[str, argparse.Action]) -> dict[str, object]:
    import tomllib  # noqa: PLC0415 - few programs are given a file

    try:
        content = tomllib.loads(file.read_text())
    except OSError as error:
        _refuse(parser, f"cannot read {file}: {error.strerror}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse(parser, f"{file} is no TOML: {error}")
    chosen: dict[str, object] = {}
    for key, value in content.items():
        if key not in options:
            _refuse(parser, f"{file}: there is no option {key}{_hint(key, options)}")
        try:
            chosen[options[key].dest] = _value(options[key], value)
        except (argparse.ArgumentTypeError, ValueError) as error:
            _refuse(parser, f"{file}: {key}: {error}")
    return chosen


def _hint(key: str, options: Mapping[str, argparse.Action]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - for the last words of a program

    like = get_close_matches(key, options, 1)
    return f"; did you mean {like[0]}?" if like else ""


def _refuse(parser: argparse.ArgumentParser, problem: str) -> NoReturn:
    """Say what is wrong with the file; how the command line looks would only bury it."""
    parser.exit(2, f"{parser.prog}: {problem}\n")


def _value(action: argparse.Action, value: object) -> object:
    """The value that the command line would have given; raises ValueError or ArgumentTypeError."""
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise ValueError(f"{_shown(value)} is neither true nor false")
        return value
    if isinstance(action.default, list):
        if not isinstance(value, list):
            raise ValueError(f"{_shown(value)} is no list like [{_shown(value)}]")  # noqa: TRY004 - what argparse expects
        return [_one(action, each) for each in value]
    return _one(action, value)


def _one(action: argparse.Action, value: object) -> object:
    if action.type is int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{_shown(value)} is no whole number")
        return value
    judged = action.type not in {None, Path} and isinstance(value, int)  # by the option's own words
    if not isinstance(value, str) and not judged:
        raise ValueError(f"{_shown(value)} is no text in quotes")
    written = value if isinstance(value, str) else _shown(value)
    chosen: object = action.type(written) if callable(action.type) else value
    if action.choices is not None and chosen not in action.choices:
        raise ValueError(f"{_shown(value)} is none of {', '.join(map(str, action.choices))}")
    return chosen


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)
