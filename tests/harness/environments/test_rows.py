from collections.abc import Iterator
from pathlib import Path

import pytest

from nemo_evaluator.environments.rows import Joined, RowList, known_size, load_rows
from nemo_evaluator.errors import UsageError

ROWS = [{"q": "één", "n": "1"}, {"q": "two, or 2", "n": "2"}]
FILES = {
    "rows.jsonl": '{"q": "één", "n": "1"}\n\n{"q": "two, or 2", "n": "2"}',
    "bom.jsonl": '\ufeff{"q": "één", "n": "1"}\r\n{"q": "two, or 2", "n": "2"}\r\n',
    "rows.json": '[{"q": "één", "n": "1"}, {"q": "two, or 2", "n": "2"}]',
    "rows.csv": 'q,n\néén,1\n"two, or 2",2\n',
    "bom.csv": '\ufeffq,n\r\néén,1\r\n"two, or 2",2\r\n',
    "rows.tsv": "q\tn\néén\t1\ntwo, or 2\t2\n",
}


@pytest.mark.parametrize("name", FILES)
def test_local_files_give_their_rows_in_any_order(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FILES[name].encode())

    rows = load_rows(name, tmp_path, {})

    assert len(rows) == 2
    assert [rows[1], rows[0], rows[1]] == [ROWS[1], ROWS[0], ROWS[1]]
    assert rows.provenance()["dataset"] == name


def test_a_row_may_be_changed_by_its_reader(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(FILES["rows.json"])
    rows = load_rows("rows.json", tmp_path, {})

    rows[0].clear()

    assert rows[0] == ROWS[0]


def test_the_content_hash_follows_the_content_and_nothing_else(tmp_path: Path) -> None:
    for name, text in {"a.jsonl": '{"n": 1}\n', "b.jsonl": '{"n": 1}\n', "c.jsonl": '{"n": 2}\n'}.items():
        (tmp_path / name).write_text(text)

    first, same, other = (load_rows(f"{n}.jsonl", tmp_path, {}).provenance()["content_hash"] for n in "abc")

    assert first == same != other


def test_a_file_is_looked_for_beside_the_benchmark_then_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "rows.jsonl").write_text('{"n": 1}\n')
    monkeypatch.chdir(tmp_path / "here")

    assert load_rows("rows.jsonl", tmp_path / "elsewhere", {})[0] == {"n": 1}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.jsonl", '{"n": 1}\n{"n": \n', r"bad\.jsonl:2: not JSON"),
        ("bad.jsonl", "[1]\n", r"bad\.jsonl:1: a JSON list"),
        ("bad.json", '{"n": 1}', "a .json dataset is a list of objects"),
        ("bad.json", "[1", "not JSON"),
        ("bad.csv", "q,n\n1\n", r"bad\.csv:2: not 2 columns"),
        ("bad.csv", "q,n\n1,2,3\n", r"bad\.csv:2: not 2 columns"),
        ("bad.csv", b"q,n\n\xff,2\n", "cannot be read as UTF-8 csv"),
    ],
)
def test_a_broken_file_is_one_line_with_its_place(name: str, text: str | bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=message) as caught:
        load_rows(name, tmp_path, {})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ("missing.jsonl", "No dataset file 'missing.jsonl'"),
        ("what is this", "is none of: hf://"),
        ("hf://a/b?splt=test", "unknown option 'splt'. Accepted: config, split, revision."),
        (lambda: 5, "returned int. Return a list of rows"),
        (lambda: [5], "row 0 is a int, not a dict"),
    ],
)
def test_what_is_no_dataset_is_refused(dataset: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        load_rows(dataset, tmp_path, {})


def test_a_callable_gets_the_params_that_it_names(tmp_path: Path) -> None:
    def rows(language: str, num_examples: int | None) -> Iterator[dict[str, object]]:
        yield {"language": language, "num_examples": num_examples}

    assert load_rows(rows, tmp_path, {"language": "de", "level": 3})[0] == {"language": "de", "num_examples": None}


def test_rows_made_by_a_callable_are_hashed_by_content() -> None:
    def hash_of(rows: list[dict[str, int]]) -> str:
        return RowList(rows, "made").provenance()["content_hash"]

    assert hash_of([{"a": 1, "b": 2}]) == hash_of([{"b": 2, "a": 1}]) != hash_of([{"a": 1, "b": 3}])


def test_joined_datasets_keep_their_columns_apart() -> None:
    parts = [(RowList([{"n": 1}, {"n": 2}], "x"), {"lang": "de"}), (RowList([{"n": 3}], "x"), {"lang": "en"})]
    rows = Joined(parts)

    assert [rows[i] for i in range(len(rows))] == [
        {"n": 1, "lang": "de"},
        {"n": 2, "lang": "de"},
        {"n": 3, "lang": "en"},
    ]
    assert rows[-1] == rows[2]
    with pytest.raises(IndexError):
        rows[3]
    assert rows.provenance()["dataset"] == "x"
    assert rows.provenance()["content_hash"] != Joined(parts[::-1]).provenance()["content_hash"]


def test_the_size_of_a_line_file_is_known_before_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(FILES["rows.jsonl"])

    assert known_size("rows.jsonl", tmp_path) == 2
    assert known_size("missing.jsonl", tmp_path) is None
    assert known_size("org/name", tmp_path) is None
