"""Whatever a user's objects are, the line is JSON."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nemo_evaluator.results.jsonl import dump_indented, dump_line, parse_line


@dataclass
class Place:
    name: str


class Unspeakable:
    def __str__(self):
        raise RuntimeError


ITSELF: dict = {}
ITSELF["again"] = ITSELF

DEEP: list = []
for _ in range(1000):
    DEEP = [DEEP]

VALUES = [
    (1, 1),
    (10**40, str(10**40)),
    ("\ud800", "?"),
    (Path("/a"), "/a"),
    ({1}, "{1}"),
    (math.nan, None),
    (math.inf, None),
    (np.float64(0.5), 0.5),
    (np.arange(2), [0, 1]),
    (Place("here"), {"name": "here"}),
    (Unspeakable(), "<Unspeakable>"),
    ({7: "a", None: "b", (1, 2): "c"}, {"7": "a", "null": "b", "(1, 2)": "c"}),
    ({10**40: 1}, {str(10**40): 1}),
]


@pytest.mark.parametrize(("value", "read"), VALUES, ids=[type(value).__name__ for value, _ in VALUES])
def test_what_has_a_form_in_json_keeps_it_and_the_rest_is_text(value, read):
    assert json.loads(dump_line({"x": value}))["x"] == read


@pytest.mark.parametrize("value", [ITSELF, DEEP, [Place("\ud800")]], ids=["itself", "deep", "surrogate within"])
def test_values_without_an_end_are_cut(value):
    line = dump_line({"x": value, "y": 1})
    assert line.endswith(b"\n") and line.count(b"\n") == 1 and parse_line(line)["y"] == 1


def test_files_for_people_are_json_too():
    """RS-07: a NaN in a bundle breaks whatever reads it next."""
    text = dump_indented({"score": math.nan, "name": "é\ud800"})
    assert json.loads(text, parse_constant=pytest.fail) == {"score": None, "name": "é?"}
    assert text.startswith(b'{\n  "score": null')


@pytest.mark.parametrize("line", [b"", b"{", b"[1]\n", b"\xff\n"])
def test_a_torn_line_is_no_row(line):
    assert parse_line(line) == {}
