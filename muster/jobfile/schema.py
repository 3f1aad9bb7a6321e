"""The JSON Schema of job files, from the models."""

from typing import Any

from muster.jobfile.models import JobKeys


def schema() -> dict[str, Any]:
    """See `muster.jobfile.job_schema`."""
    made = _tidy(JobKeys.model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **made,
        "title": "Muster job file",
        "not": {"required": ["workers", "roles"]},
    }


def _tidy(node: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """Without what JSON Schema needs to allow null, which a job file never does."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidy = {key: _tidy(value) for key, value in node.items() if not (key == "default" and value is None)}
    options = [option for option in tidy.get("anyOf", []) if option != {"type": "null"}]
    if "anyOf" not in tidy or len(options) == len(tidy["anyOf"]):
        return tidy
    del tidy["anyOf"]
    return {**tidy, **options[0]} if len(options) == 1 else {**tidy, "anyOf": options}
