"""JSON Schemas of the values that are answered, made from their types: see `muster.documents` for their form."""

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from console.api.route import Listed, Route, Streamed, TextOf
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
    definitions = shared.get("$defs", {}) | {JOB_FILE: _job_file()}
    return {each: schema for (each, _), schema in found.items()}, definitions


def type_of(answer: Any) -> Any:  # noqa: ANN401 - any type
    """The type of one value of an answer."""
    return answer.of if isinstance(answer, (Listed, Streamed)) else answer


def _job_file() -> JsonSchemaValue:
    """The schema of job files, whose definitions stand in it."""
    return {
        key: value
        for key, value in _moved(job_schema(), f"#/components/schemas/{JOB_FILE}").items()
        if key != "$schema"
    }


def _moved(value: Any, to: str) -> Any:  # noqa: ANN401 - any JSON
    """A schema whose references within it hold where it stands now."""
    if isinstance(value, dict):
        return {
            key: to + each.removeprefix("#") if key == "$ref" and isinstance(each, str) else _moved(each, to)
            for key, each in value.items()
        }
    return [_moved(each, to) for each in value] if isinstance(value, list) else value
