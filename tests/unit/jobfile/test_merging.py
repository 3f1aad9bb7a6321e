"""Joining job files with presets: what counts, what is taken away, and whose each value is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import InvalidJobError
from muster.domain.fleet.policies.preset import Preset, PresetKind
from muster.domain.jobs.queueing.used_preset import UsedPreset
from muster.jobfile import load_job
from muster.jobfile.document import Table, unfold
from muster.jobfile.load import node_of
from muster.jobfile.presets import described_jobs, merged_job, named_by, named_in_document, refused_in_document
from muster.jobfile.presets.job_document import JobDocument, table_of, written
from muster.jobfile.presets.merging import Layer, joined, layer, merged
from muster.jobfile.presets.reading import atom_of

DDP = UsedPreset(project="*", kind="template", name="ddp", version=2)
NODE = UsedPreset(project="vision", kind="resources", name="node", version=1)


def table(values: dict[str, Any]) -> Table:
    root = node_of(values)
    assert isinstance(root, Table)
    return root


def together(*parts: dict[str, Any]) -> Any:
    """What documents say together, the last of which is the job file."""
    origins = [DDP, NODE][: len(parts) - 1]
    layers = [layer(table(each), origin) for each, origin in zip(parts, [*origins, None], strict=True)]
    return unfold(merged(layers).document, atom_of)


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (({"env": {"A": "1", "B": "2"}}, {"env": {"B": "3"}}), {"env": {"A": "1", "B": "3"}}),
        (({"command": ["a", "b"]}, {"command": ["c"]}), {"command": ["c"]}),
        (({"image": "pt", "env": {"A": "1"}}, {"image": None, "env": {"A": None}}), {"env": {}}),
        (({"framework": {"name": "pytorch"}}, {"framework": "mpi"}), {"framework": "mpi"}),
        (({"resources": {"gpus": 1}}, {"resources": None}, {"resources": {"cpus": 2}}), {"resources": {"cpus": 2}}),
        (
            ({"roles": [{"name": "a"}, {"name": "b", "count": 2}]}, {"roles": [{"name": "c"}]}),
            {"roles": [{"name": "c"}]},
        ),
        (
            ({"roles": [{"name": "a"}, {"name": "b", "image": "x"}]}, {"roles": {"b": {"count": 3, "image": None}}}),
            {"roles": [{"name": "a"}, {"name": "b", "count": 3}]},
        ),
        (
            ({"roles": {"a": {"image": "x", "count": 2}, "z": {"count": 9}}}, {"roles": [{"name": "a", "count": 4}]}),
            {"roles": [{"image": "x", "count": 4, "name": "a"}]},
        ),
        (({"roles": [{"name": "a"}]}, {"roles": None}), {}),
    ],
)
def test_what_comes_later_counts_and_null_takes_away(parts: tuple[dict[str, Any], ...], whole: dict[str, Any]) -> None:
    assert together(*parts) == whole


scalars = st.none() | st.sampled_from(["x", "y", 1])
maps = st.recursive(
    scalars, lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(scalars, max_size=2)
)
roles = (
    st.none()
    | st.dictionaries(st.sampled_from("pq"), st.dictionaries(st.sampled_from("abc"), maps, max_size=2), max_size=2)
    | st.lists(
        st.dictionaries(st.sampled_from("abc"), maps, max_size=2).flatmap(
            lambda keys: st.sampled_from("pq").map(lambda name: {"name": name, **keys})
        ),
        max_size=2,
        unique_by=lambda role: role["name"],
    )
)
documents = st.fixed_dictionaries({}, optional={"a": maps, "b": maps, "roles": roles})


@given(documents, documents, documents)
def test_it_makes_no_difference_which_are_joined_first(
    first: dict[str, Any], second: dict[str, Any], third: dict[str, Any]
) -> None:
    a, b, c = (layer(table(each), origin) for each, origin in ((first, DDP), (second, NODE), (third, None)))

    assert joined(joined(a, b), c) == joined(a, joined(b, c))
    assert joined(Layer(), a) == joined(a, Layer()) == a


@given(documents, documents)
def test_each_value_is_of_the_last_who_said_it_and_nothing_is_null(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    whole = merged([layer(table(first), DDP), layer(table(second), None)])
    alone = merged([layer(table(second), None)])

    for loc, origin in whole.origins.items():
        assert origin is None or loc[0] in first
    own = {loc for loc, origin in whole.origins.items() if origin is None}
    assert {loc for loc in alone.origins if loc[0] != "roles"} <= own
    assert not [loc for loc in whole.origins if loc[0] != "roles" and _at(whole.document, loc) is None]


def _at(root: Any, loc: tuple[Any, ...]) -> Any:
    for part in loc:
        root = root.entries[part]
    return getattr(root, "value", root)


def preset(kind: PresetKind, name: str, document: dict[str, Any], version: int = 1, project: str = "vision") -> Preset:
    return Preset(project=project, kind=kind, name=name, version=version, document=document)


TORCH = preset(PresetKind.ENVIRONMENT, "torch", {"image": "pt", "env": {"MODE": "010", "A": "1"}}, 4)
GPUS = preset(PresetKind.RESOURCES, "node", {"resources": {"gpus": 8}, "roles": {"ps": {"resources": {"gpus": 0}}}})


def job(text: str, *presets: Preset) -> Any:
    ((_, document),) = described_jobs(text, "job.yaml")
    assert isinstance(document, JobDocument)
    return merged_job(document.text, "vision", presets)


def test_a_job_knows_its_versions_and_whose_each_value_is() -> None:
    made = job("name: a\nuse: {environment: torch@4}\ncommand: [train]\nenv: {A: no}\nworkers: 2\n", TORCH, GPUS)

    (role,) = made.spec.roles
    assert (role.image, dict(role.env), role.count, role.resources.gpus) == ("pt", {"MODE": "010", "A": "no"}, 2, 8)
    assert [str(each) for each in made.used] == [
        "environment torch@4 of project vision",
        "resources node@1 of project vision",
    ]
    assert made.origins == {
        "image": "environment torch@4 of project vision",
        "env.MODE": "environment torch@4 of project vision",
        "resources.gpus": "resources node@1 of project vision",
    }
    assert made.of_file(("roles", 0, "env", "A"))
    assert not made.of_file(("roles", 0, "env", "MODE"))
    assert not made.of_file(("roles", 0, "image"))
    assert made.spec.project == "vision"


def test_what_is_about_one_role_counts_for_that_role_alone() -> None:
    made = job("name: a\nuse: {resources: node}\ncommand: [train]\nroles:\n- name: ps\n- {name: w, count: 2}\n", GPUS)

    assert [(each.name, each.resources.gpus) for each in made.spec.roles] == [("ps", 0), ("w", 8)]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("use: {environment: torch}\n", "job.yaml:1:1: name: is missing"),
        ("name: a\nuse: {environment: torch}\nenv: {A: [1]}\n", "job.yaml:3:7: env.A: "),
        ("name: a\nuse: {environment: torch}\nevn: {}\n", 'job.yaml:3:1: evn: unknown key; did you mean "env"?'),
        (
            "name: a\nuse: {environment: torch}\nroles: {x: {count: 1}}\n",
            "job.yaml:3:9: roles.x: is no role of this job",
        ),
        ("name: a\nuse: {environment: torch}\nworkers: 2\nroles: [{name: b}]\n", "workers: stands beside roles"),
    ],
)
def test_faults_of_the_file_have_their_line_and_column(text: str, wrong: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        job(text, TORCH)
    told = refused_in_document(str(refused.value), "job.yaml", text)
    assert told is not None
    assert wrong in str(told)


def test_faults_of_a_preset_name_it_and_its_version() -> None:
    bad = preset(PresetKind.RESOURCES, "node", {"resources": {"gpus": 8, "gpu": 1}}, 7, "*")
    text = "name: a\nuse: {resources: node}\ncommand: [x]\n"

    with pytest.raises(InvalidJobError) as refused:
        job(text, bad)

    assert str(refused.value) == (
        'resources.gpu: unknown key; did you mean "gpus"? (from resources node@7 of the fleet)'
    )
    assert refused_in_document(str(refused.value), "job.yaml", text) is None


@pytest.mark.parametrize(
    ("use", "wrong"),
    [
        ("torch", "must be a map like"),
        ("{env: torch}", "is no kind of preset"),
        ("{environment: [a]}", "must be the name of a preset, not a list"),
        ("{environment: torch@new}", "has no number of a version after @"),
        (f"{{data: [{', '.join(['a'] * 21)}]}}", "names 21 presets; 20 are the most"),
    ],
)
def test_what_is_no_name_of_a_preset_is_refused_where_it_stands(use: str, wrong: str) -> None:
    with pytest.raises(InvalidJobError, match=r"job.yaml:2:") as refused:
        described_jobs(f"name: a\nuse: {use}\n", "job.yaml")
    assert wrong in str(refused.value)


def test_presets_are_joined_by_kind_whatever_the_order_of_their_names() -> None:
    text = json.dumps({"use": {"data": ["b", "a@2"], "environment": "c", "template": "d", "resources": None}})

    assert [(each.kind, each.name, each.version) for each in named_in_document(text)] == [
        ("template", "d", 0),
        ("environment", "c", 0),
        ("data", "b", 0),
        ("data", "a", 2),
    ]
    assert named_in_document("{}") == ()
    assert named_by('{"name": "a", "project": "vision"}') == ("a", "vision")


@pytest.mark.parametrize(
    "text",
    ['{"a": 1.50, "b": [true, null, "x"], "c": {"d": -7}}', "{a: 010, b: ~, c: True, d: 0x1F, e: .inf, f: 'no'}"],
)
def test_a_document_is_sent_as_it_is_written(text: str) -> None:
    root = table_of(text)

    assert unfold(table_of(written(root)), lambda scalar: (scalar.value, scalar.text)) == unfold(
        root, lambda scalar: (scalar.value, scalar.text)
    )


@pytest.mark.parametrize("text", ["[]", "", "{", "[" * 100_000, '{"a": "\\ud800"}', '{"a": NaN}', "a: 1\na: 2\n"])
def test_a_document_that_cannot_be_read_is_refused(text: str) -> None:
    if text == '{"a": NaN}':
        assert named_by(text) == ("", "")  # a word, as YAML has it
        return
    with pytest.raises(InvalidJobError, match="the document of the job"):
        named_by(text)


def test_what_only_this_place_can_read_goes_along(tmp_path: Any) -> None:
    (tmp_path / "a.txt").write_bytes(b"\x00\x01")
    (tmp_path / "src").mkdir()
    text = "name: a\nuse: {}\ncode: src\nroles:\n- {name: b, files: [{path: x, source: a.txt}], code: {folder: src}}\n"

    ((_, document),) = described_jobs(text, "job.yaml", base=tmp_path)

    assert isinstance(document, JobDocument)
    assert document.folders == (str(tmp_path / "src"),)
    sent = document.with_trees({str(tmp_path / "src"): ("f" * 64, 7)}).in_project("vision")
    assert json.loads(sent.text) == {
        "name": "a",
        "use": {},
        "code": {"tree": "f" * 64, "size": 7},
        "roles": [
            {
                "name": "b",
                "files": [{"path": "x", "content_base64": "AAE="}],
                "code": {"tree": "f" * 64, "size": 7},
            }
        ],
        "project": "vision",
    }
    with pytest.raises(InvalidJobError, match=r"job.yaml:3:7: code: .* is no folder"):
        described_jobs("name: a\nuse: {}\ncode: none\n", "job.yaml", base=tmp_path)


def test_a_file_that_names_presets_is_no_job_by_itself() -> None:
    with pytest.raises(InvalidJobError, match="names presets, which only a coordinator joins"):
        load_job("name: a\nuse: {environment: torch}\ncommand: [x]\n", "job.yaml")
