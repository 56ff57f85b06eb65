from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_evaluator.environments.template import Template, read_template
from nemo_evaluator.errors import UsageError

ROW = {"question": 'What is {"a": 1}?', "choices": ["x", "y"], "price": 1.5, "größe": "gross", "n": 7}


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        ("Q: {question}", 'Q: What is {"a": 1}?'),
        ('Reply as {"answer": 5} to {question}', 'Reply as {"answer": 5} to What is {"a": 1}?'),
        ('{"a": {"b": 1}} {n}', '{"a": {"b": 1}} 7'),
        ('{"a": {n}}', '{"a": 7}'),
        ("{{n}} is {n}", "{n} is 7"),
        ('{{"n": {n}}}', '{"n": 7}'),
        ("{choices[1]} {choices[0]}", "y x"),
        ("{price:.2f} {n:03d} {question!r}", "1.50 007 'What is {\"a\": 1}?'"),
        ("{größe}", "gross"),
        ("{} { n } {0} {n", "{} { n } {0} {n"),
        ("{unknown: 5} {other[0]}", "{unknown: 5} {other[0]}"),
        ("{n}{n}", "77"),
        ("", ""),
    ],
)
def test_only_columns_are_filled_in(template: str, prompt: str) -> None:
    assert Template.parse(template).render(ROW) == prompt


def test_a_missing_column_names_the_field_and_the_columns_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        Template.parse("{qestion}").render({"question": "", "n": 1})
    assert "{qestion}" in str(caught.value)
    assert "it has: question, n." in str(caught.value)
    assert "{{qestion}}" in str(caught.value)


@pytest.mark.parametrize("template", ["{choices[5]}", "{n[0]}", "{question:d}", "{n.missing}"])
def test_a_field_that_does_not_fit_its_value_is_refused(template: str) -> None:
    with pytest.raises(UsageError, match="does not fit the column's value"):
        Template.parse(template).render(ROW)


def test_a_template_can_be_a_file_beside_the_benchmark(tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("Q: {question}")

    assert read_template("prompt.txt", tmp_path) == "Q: {question}"
    assert read_template("Ask for notes.txt\n{question}", tmp_path) == "Ask for notes.txt\n{question}"


@pytest.mark.parametrize(
    ("prompt", "message"),
    [("missing.md", "No prompt file 'missing.md'"), ("p.jinja", "templates are .txt or .md files")],
)
def test_a_template_file_that_cannot_be_used_is_refused(prompt: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        read_template(prompt, tmp_path)


@given(st.text(), st.text())
def test_a_value_is_never_read_as_a_template(before: str, value: str) -> None:
    before = before.replace("{", "").replace("}", "")

    assert Template.parse(before + "{question}").render({"question": value}) == before + value
