"""Lists with some fields alone, and as CSV."""

import csv
import io

from console.api.shapes.shaping import MOST_FIELDS, csv_of, fields_of, selected

JOB = {"id": "k3", "phase": "running", "spec": {"name": "vit", "labels": {"paper": "icml"}}, "why": None, "gpus": 8}


def test_fields_are_named_with_commas_or_again_and_count_once() -> None:
    assert fields_of(["id,phase", "id", ""]) == ("id", "phase")
    assert fields_of([]) == ()
    assert fields_of([",".join(map(str, range(MOST_FIELDS + 1)))]) is None
    assert fields_of(["x" * 201]) is None


def test_only_what_is_asked_for_is_left_where_it_was() -> None:
    assert selected(JOB, ("phase", "spec.name", "spec.labels.paper", "nothing", "phase.none")) == {
        "phase": "running",
        "spec": {"name": "vit", "labels": {"paper": "icml"}},
    }
    assert selected(JOB, ("why",)) == {"why": None}


def test_a_table_has_the_fields_in_their_order_or_all_that_there_are() -> None:
    rows = list(csv.reader(io.StringIO(csv_of([JOB, {"id": "m4", "rank": 0}], ()))))
    assert rows == [
        ["id", "phase", "spec", "why", "gpus", "rank"],
        ["k3", "running", '{"name":"vit","labels":{"paper":"icml"}}', "", "8", ""],
        ["m4", "", "", "", "", "0"],
    ]
    assert csv_of([JOB], ("spec.name", "id")) == "spec.name,id\r\nvit,k3\r\n"


def test_no_text_of_others_is_a_formula_to_a_spreadsheet() -> None:
    for text in ("=1+1", "+1", "-1", "@x", "\tx"):
        assert csv_of([{"name": text}], ()).splitlines()[1].strip('"').startswith("'")
    assert csv_of([{"loss": -1.5}], ()) == "loss\r\n-1.5\r\n"
