"""JSON Schemas of the values that are answered, made from their types: see `muster.documents` for their form."""

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from console.api.route import Listed, Route, Streamed, TextOf
from muster.documents import document
from muster.domain.jobs.job import JobSpec
from muster.jobfile import job_schema

REFERENCE = "#/components/schemas/{model}"
JOB_FILE = "JobFile"
"""The name of the schema of job files among all."""


class DocumentSchema(GenerateJsonSchema):
    """Schemas of the form in which values are written: spans are seconds, bytes are text, specs are job files."""

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:  # noqa: ARG002 - of all alike
        """A span of time."""
        return {"type": "number", "description": "Seconds."}

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:  # noqa: ARG002 - of all alike
        """Bytes: text, or base64 where they are none."""
        base64 = {"type": "object", "properties": {"base64": {"type": "string"}}, "required": ["base64"]}
        return {"anyOf": [{"type": "string"}, base64]}

    def encode_default(self, dft: Any) -> Any:  # noqa: ANN401 - any value
        """What a value is where nobody says it, in the form in which values are written."""
        return document(dft)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """A value; a job's specification is written as its job file."""
        if schema["cls"] is JobSpec:
            return {"$ref": REFERENCE.format(model=JOB_FILE)}
        return super().dataclass_schema(schema)


def answers_of(routes: Iterable[Route]) -> tuple[Mapping[Any, JsonSchemaValue], dict[str, JsonSchemaValue]]:
    """The schema of what each route gives one of, by type, and the schemas to which they refer, by name."""
    types = {type_of(route.answer) for route in routes if not isinstance(route.answer, (TextOf, NoneType))}
    wanted = [(each, "serialization", TypeAdapter(each)) for each in sorted(types, key=lambda each: each.__name__)]
    found, shared = TypeAdapter.json_schemas(
        wanted,  # type: ignore[arg-type]  # the mode is a text that mypy takes for any
        ref_template=REFERENCE,
        schema_generator=DocumentSchema,
    )
    definitions = shared.get("$defs", {}) | _job_file()
    return {each: schema for (each, _), schema in found.items()}, definitions


def type_of(answer: Any) -> Any:  # noqa: ANN401 - any type
    """The type of one value of an answer."""
    return answer.of if isinstance(answer, (Listed, Streamed)) else answer


def _job_file() -> Mapping[str, JsonSchemaValue]:
    """The schema of job files, and beside it those of their parts, as generators of clients look for no others."""
    whole = {key: value for key, value in _moved(job_schema()).items() if key not in {"$schema", "$id"}}
    parts = {f"{JOB_FILE}{name}": part for name, part in whole.pop("$defs").items()}
    return {JOB_FILE: whole, **parts}


def _moved(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """A schema whose references within it hold where its parts stand now.

    Titles go: they are words for editors, and generators of clients take them for names.
    """
    if isinstance(value, dict):
        return {
            key: _place_of(each) if key == "$ref" and isinstance(each, str) else _moved(each)
            for key, each in value.items()
            if not (key == "title" and isinstance(each, str))
        }
    return [_moved(each) for each in value] if isinstance(value, list) else value


def _place_of(reference: str) -> str:
    return REFERENCE.format(model=JOB_FILE + reference.removeprefix("#").removeprefix("/$defs/"))
