"""Presets by themselves: which keys each kind has, what is refused of one, and where a file says it."""

from typing import Any

import pytest

from muster.domain.errors import InvalidJobError
from muster.domain.fleet.policies.policy import JobPolicy
from muster.domain.fleet.policies.preset import Preset, PresetKind
from muster.jobfile.errors import JobFileError
from muster.jobfile.policies import policy_rules
from muster.jobfile.presets import load_preset, refuse_preset_faults

GOOD: dict[PresetKind, list[dict[str, Any]]] = {
    PresetKind.TEMPLATE: [
        {"name": "ddp", "workers": 4, "framework": "pytorch", "restarts": {"limit": 3}, "class": "spare"},
        {"roles": [{"name": "master"}, {"name": "worker", "count": 3}]},
        {"roles": {"worker": {"count": 3}}, "code": {"git": "https://example.org/code.git"}},
        {"timeouts": {"run": None}, "image": None},
    ],
    PresetKind.ENVIRONMENT: [
        {"image": "pt", "pull": "always", "env": {"A": "1", "B": None}, "user": "1000", "ports": ["http"]},
        {"interactive": True, "workdir": "/work", "command": "python train.py", "entrypoint": []},
    ],
    PresetKind.RESOURCES: [
        {"resources": {"gpus": 8, "memory": "64Gi"}, "pools": ["h100"], "topology": {"required": "rack"}},
        {"roles": {"master": {"resources": {"gpus": 0}}}, "resources": {"gpus": 8}, "node_type": "h100"},
    ],
    PresetKind.DATA: [
        {
            "inputs": {"sets": "s3://sets/a.tar"},
            "mounts": ["/data:/data"],
            "volumes": {"t": {"path": "/t", "size": "1Gi"}},
        }
    ],
}


def preset(kind: PresetKind, document: dict[str, Any], **more: Any) -> Preset:
    return Preset(**{"project": "vision", "kind": kind, "name": "one", "document": document, **more})


@pytest.mark.parametrize(("kind", "document"), [(kind, each) for kind, some in GOOD.items() for each in some])
def test_a_preset_may_say_what_its_kind_is_about_and_take_away(kind: PresetKind, document: dict[str, Any]) -> None:
    assert refuse_preset_faults(preset(kind, document)).document == document


@pytest.mark.parametrize(
    ("kind", "document", "wrong"),
    [
        ("data", {"image": "pt"}, "image: is no key that a preset of the kind data has"),
        ("environment", {"evn": {}}, "did you mean env"),
        ("template", {"project": "vision"}, "project: is no key"),
        ("template", {"use": {"data": ["a"]}}, "use: is no key"),
        ("resources", {"roles": {"master": {"env": {}}}}, "roles.master.env: is no key that a role has in it"),
        ("resources", {"roles": {"master": {"resources": {"gpu": 1}}}}, "roles.master.resources.gpu: unknown key"),
        ("resources", {"roles": [{"name": "master"}]}, "roles: must be a map by the name of a role, not a list"),
        ("resources", {"roles": {"master": 1}}, "roles.master: must be a map, not 1"),
        ("resources", {"resources": {"gpus": -1}}, "resources.gpus: "),
        ("template", {"files": [{"path": "a", "source": "a.txt"}]}, "cannot be read from a preset"),
        ("template", {"code": "."}, "code: cannot be a folder in a preset"),
        ("template", {"roles": {"worker": {"code": {"folder": "."}}}}, "roles.worker.code: cannot be a folder"),
        ("environment", {"env": {"A": "x" * 40_000}}, "is longer than 32 KiB as JSON"),
        ("environment", {}, "says nothing"),
    ],
)
def test_what_no_job_could_use_is_refused_with_its_place(kind: str, document: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        refuse_preset_faults(preset(PresetKind(kind), document))
    assert wrong in str(refused.value)


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"name": "Py Torch"}, "must have a name of at most 63"),
        ({"title": "x" * 101}, "has a title of 101 characters"),
        ({"note": "x" * 1001}, "has a note of 1001 characters"),
    ],
)
def test_names_titles_and_notes_are_short(more: dict[str, str], wrong: str) -> None:
    with pytest.raises(InvalidJobError, match=wrong):
        refuse_preset_faults(preset(PresetKind.DATA, {"inputs": {"a": "https://example.org/a"}}, **more))


def refused(rules: dict[str, Any], document: dict[str, Any], kind: PresetKind = PresetKind.TEMPLATE) -> list[str]:
    """What policies refuse of a preset."""
    policies = [JobPolicy(project="vision", rules=policy_rules({"rules": rules}))]
    try:
        refuse_preset_faults(preset(kind, document), policies)
    except InvalidJobError as error:
        return [fault.split(" (")[0] for fault in str(error).splitlines()]
    return []


def test_policies_refuse_values_of_presets_and_leave_to_the_job_what_presets_leave_out() -> None:
    gpus = {"resources.gpus": {"required": True, "min": 2, "max": 8}, "image": {"pattern": "registry.local/*"}}

    assert refused(gpus, {"env": {"A": "1"}}) == []
    assert refused(gpus, {"resources": {"gpus": 9}}) == ["resources.gpus: 9 is not allowed; 2, 3, 4, 5, 6, 7 or 8 are"]
    assert refused(gpus, {"roles": {"ps": {"resources": {"gpus": 0}}}, "resources": {"gpus": 4}}) == [
        "roles.ps.resources.gpus: 0 is not allowed; 2, 3, 4, 5, 6, 7 or 8 are"
    ]
    assert refused({"workers": {"max": 4}}, {"workers": 5}) == ["workers: 5 is not allowed; at most 4 is"]
    assert refused({"mounts": {"add": False}}, {"mounts": ["/a:/a"]}, PresetKind.DATA) == []
    assert refused({"priority": {"locked": True}}, {"priority": 3}) == ['priority: is locked; leave it at "0"']


def test_a_file_is_read_as_it_is_written_and_faults_have_their_line_and_column() -> None:
    text = "image: pt\nenv: {NO: no, MODE: 010, N: 7, ON: true, GONE: null}\n"
    assert load_preset(text, "env.yaml", PresetKind.ENVIRONMENT) == {
        "image": "pt",
        "env": {"NO": "no", "MODE": "010", "N": 7, "ON": True, "GONE": None},
    }
    with pytest.raises(JobFileError) as wrong:
        load_preset("image: pt\nresources: {gpus: 8}\n", "env.yaml", PresetKind.ENVIRONMENT)
    assert str(wrong.value).startswith("env.yaml:2:1: resources: is no key that a preset of the kind environment has")
    for text in ("", "- a\n", "image: [\n", "image: a\nimage: b\n"):
        with pytest.raises(JobFileError):
            load_preset(text, "env.yaml", PresetKind.ENVIRONMENT)
