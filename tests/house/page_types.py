"""The types of the pages' calls: TypeScript, made from the schemas of what the console answers.

So the compiler holds pages against the API.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from console.api.app import DESCRIBED
from console.api.route import Listed, Route, Streamed, TextOf
from console.api.schemas import JOB_FILE, answers_of, type_of

_HEAD = """// Printed from the routes of the console by `make web`; never committed.

/** A part of a list; `next` leads to the part after it, and is empty after the last one. */
export interface Listed<T> {
  items: T[];
  next: string;
}
"""
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def page_types() -> str:
    """All of them, as a module."""
    answers, definitions = answers_of(DESCRIBED)
    parts = [_HEAD, *(_definition(name, definitions[name]) for name in sorted(definitions))]
    parts.append("\n".join(_calls(answers)))
    return "\n".join(parts) + "\n"


def _definition(name: str, schema: Mapping[str, Any]) -> str:
    comment = _comment(schema, "")
    told = not name.startswith(JOB_FILE)  # of a job file only that is answered which differs from its default
    if schema.get("type") == "object" and "properties" in schema:
        return f"{comment}export interface {name} {{\n{''.join(_properties(schema, '  ', told=told))}}}\n"
    return f"{comment}export type {name} = {_type(schema)};\n"


def _properties(schema: Mapping[str, Any], indent: str, *, told: bool = True) -> Iterator[str]:
    required = schema.get("required", ())
    for name, each in schema["properties"].items():
        there = name in required or (told and ("default" in each or each.get("type") == "object"))
        mark = "" if there else "?"
        key = name if name.isidentifier() else f'"{name}"'
        yield f"{_comment(each, indent)}{indent}{key}{mark}: {_type(each)};\n"


def _type(schema: Any) -> str:  # noqa: C901, PLR0911 - one for each form of a schema
    if not isinstance(schema, Mapping):
        return "unknown"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(map(_type, schema[several])))
    if "const" in schema:
        return _literal(schema["const"])
    if "enum" in schema:
        return " | ".join(map(_literal, schema["enum"]))
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return f"[{', '.join(map(_type, schema['prefixItems']))}]"
        case "array":
            item = _type(schema.get("items"))
            return f"({item})[]" if " | " in item else f"{item}[]"
        case "object" if "properties" in schema:
            return "{ " + " ".join(each.strip() for each in _properties(schema, "")) + " }"
        case "object":
            return f"Record<string, {_type(schema.get('additionalProperties'))}>"
        case str() as kind:
            return _PLAIN[kind]
        case list() as kinds:
            return " | ".join(_PLAIN.get(kind, "unknown") for kind in kinds)
    return "unknown"


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else "null" if value is None else str(value).lower()


def _comment(schema: Any, indent: str) -> str:
    text = schema.get("description", "") if isinstance(schema, Mapping) else ""
    first = text.strip().splitlines()[0] if text.strip() else ""
    return f"{indent}/** {first.replace('*/', '* /')} */\n" if first else ""


def _calls(answers: Mapping[Any, Any]) -> Iterator[str]:
    yield "/** What each call answers, by its verb and path. */"
    yield "export interface Calls {"
    for route in sorted(DESCRIBED, key=lambda each: (each.path, each.verb)):
        yield f'  "{route.verb} {route.path}": {_answer(route, answers)};'
    yield "}"


def _answer(route: Route, answers: Mapping[Any, Any]) -> str:
    match route.answer:
        case None:
            return "void"
        case TextOf():
            return "string"
        case Listed() | Streamed():
            return f"Listed<{_type(answers[type_of(route.answer)])}>"
    return _type(answers[type_of(route.answer)])
