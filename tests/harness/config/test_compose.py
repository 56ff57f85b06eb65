from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_evaluator.config.document import Document, merge
from nemo_evaluator.config.load import load_config
from nemo_evaluator.errors import UsageError
from tests.harness.config.conftest import SMALLEST, Load

SERVICE = "m: {type: api, url: 'http://h/v1', protocol: completions, model: fragment}\n"
BENCHMARKS = "benchmarks: [{name: gsm8k, solver: {type: simple, service: m}}]\n"


def test_fragment_goes_under_the_key_of_its_folder(load: Load) -> None:
    loaded = load(
        "defaults: [services/local, clusters/here]\n" + BENCHMARKS,
        files={"conf/services/local.yaml": SERVICE, "conf/clusters/here.yml": "type: local\n"},
    )
    assert loaded.config.services["m"].model == "fragment"
    assert loaded.composed["cluster"] == {"type": "local"}


def test_own_keys_win_unless_self_comes_first(load: Load) -> None:
    own = "services: {m: {model: own}}\n" + BENCHMARKS
    files = {"conf/services/local.yaml": SERVICE}
    assert load("defaults: [services/local]\n" + own, files=files).config.services["m"].model == "own"
    last = load("defaults: [_self_, services/local]\n" + own, files=files)
    assert last.config.services["m"].model == "fragment"


def test_base_is_found_beside_the_file_that_names_it(load: Load) -> None:
    loaded = load(
        "defaults: [{_base_: shared/base}]\noutput: {dir: mine}\n",
        files={"shared/base.yaml": "defaults: [{_base_: root}]\noutput: {dir: base}\n", "shared/root.yaml": SMALLEST},
    )
    assert loaded.config.output.dir == "mine"
    assert loaded.config.benchmarks[0].name == "gsm8k"


def test_library_of_the_config_folder_comes_before_that_of_the_user(load: Load, tmp_path: Path) -> None:
    home = "home/.config/nemo-evaluator/conf/"
    files = {"conf/base.yaml": SMALLEST, home + "base.yaml": "{}", home + "output/there.yaml": "dir: there\n"}
    loaded = load("defaults: [{_base_: base}, output/there]\n", files=files, environ={"HOME": str(tmp_path / "home")})
    assert loaded.config.services["m"].model == "tiny"
    assert loaded.config.output.dir == "there"


def test_two_ways_to_one_base_are_no_circle(load: Load) -> None:
    files = {
        "left.yaml": "defaults: [{_base_: root}]\noutput: {dir: left}\n",
        "right.yaml": "defaults: [{_base_: root}]\n",
        "root.yaml": SMALLEST,
    }
    loaded = load("defaults: [{_base_: left}, {_base_: right}]\n", files=files)
    assert loaded.config.output.dir == "left"


def test_a_circle_is_refused_with_its_files(load: Load) -> None:
    with pytest.raises(UsageError, match=r"in a circle: run\.yaml -> a\.yaml -> b\.yaml -> a\.yaml"):
        load(
            "defaults: [{_base_: a}]\n",
            files={"a.yaml": "defaults: [{_base_: b}]\n", "b.yaml": "defaults: [{_base_: a}]\n"},
        )


def test_null_deletes_what_was_inherited(load: Load) -> None:
    base = SMALLEST.replace("model: tiny", "model: tiny\n    generation: {temperature: 1, seed: 3}")
    own = "defaults: [{_base_: base}]\nservices: {m: {generation: {temperature: null}}}\n"
    loaded = load(own, files={"base.yaml": base})
    assert loaded.composed["services"]["m"]["generation"] == {"seed": 3}


def test_null_is_a_key_that_is_not_set_also_inside_lists(load: Load) -> None:
    loaded = load(SMALLEST.replace("name: gsm8k", "name: gsm8k\n    repeats: null\n    params: {split: null}"))
    assert loaded.config.benchmarks[0].repeats == 1
    assert loaded.config.benchmarks[0].params == {"split": None}


def test_lists_are_replaced(load: Load) -> None:
    loaded = load(
        "defaults: [{_base_: base}]\nbenchmarks: [{name: b, solver: {type: simple, service: m}}]\n",
        files={"base.yaml": SMALLEST},
    )
    assert [benchmark.name for benchmark in loaded.config.benchmarks] == ["b"]


def test_errors_name_the_file_that_wrote_the_key_last(load: Load) -> None:
    files = {"base.yaml": SMALLEST + "output: {dir: x, progress_interval: 0}\n"}
    with pytest.raises(UsageError, match=r"^base\.yaml:12: output\.progress_interval is 0"):
        load("defaults: [{_base_: base}]\noutput: {dir: y}\n", files=files)
    with pytest.raises(UsageError, match=r"^run\.yaml:2: output\.progress_interval is -1"):
        load("defaults: [{_base_: base}]\noutput: {progress_interval: -1}\n", files=files)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("defaults: base\n", r"^run\.yaml:1: defaults is text; a list is expected$"),
        ("defaults: [base]\n", r"^run\.yaml:1: defaults holds 'base'; an entry is a fragment `group/name`"),
        (
            "defaults: [{_base_: nothing}]\n",
            r"^run\.yaml:1: no file nothing, nothing\.yaml or nothing\.yml in \., conf$",
        ),
        ("defaults: [services/x]\n", r"^run\.yaml:1: no file services/x, .* in conf$"),
        ("_base_: x\n", r"^run\.yaml:1: _base_ belongs in the list `defaults:`"),
        ("- a\n", r"^the config run\.yaml is a list; a mapping of keys is expected$"),
        ("", r"^the config run\.yaml is empty$"),
        ("a: [1\nb: 2\n", r"^run\.yaml:2: not valid YAML: "),
        ("a: 1\nb: 2\na: 3\n", r"^run\.yaml:3: a is given twice$"),
        ("a: &x [*x]\n", r"^run\.yaml:1: a\[0\] contains itself$"),
        ("? [a]\n: 1\n", r"^run\.yaml:1: a key is a list or a mapping"),
        ("a: \x07\n", r"^run\.yaml: not valid YAML: "),
        ("a: !!python/object:os.system x\n", r"^run\.yaml:1: not valid YAML: "),
    ],
)
def test_a_file_that_cannot_be_composed_is_refused_in_one_line(load: Load, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refusal:
        load(text)
    assert "\n" not in str(refusal.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^cannot read the config .*: Is a directory$"):
        load_config(tmp_path, environ={})
    with pytest.raises(UsageError, match=r"^cannot read the config .*/no\.yaml: No such file or directory$"):
        load_config(tmp_path / "no.yaml", environ={})
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9")
    with pytest.raises(UsageError, match=r"latin\.yaml: it is not UTF-8 text$"):
        load_config(tmp_path / "latin.yaml", environ={})


def test_a_fragment_has_no_defaults(load: Load) -> None:
    with pytest.raises(UsageError, match=r"^conf/output/x\.yaml:1: a fragment cannot have defaults"):
        load("defaults: [output/x]\n", files={"conf/output/x.yaml": "defaults: []\n"})


def test_anchors_and_merge_keys_are_ordinary_yaml(load: Load) -> None:
    text = (
        SMALLEST + "  - name: other\n    solver: &s {type: simple, service: m}\n  - {name: third, solver: {<<: *s}}\n"
    )
    assert [benchmark.solver.service for benchmark in load(text).config.benchmarks] == ["m"] * 3


def test_a_date_is_text(load: Load) -> None:
    assert load(SMALLEST.replace("tiny", "2024-05-01")).config.services["m"].model == "2024-05-01"


KEYS = st.sampled_from("abc")
TREES = st.recursive(st.integers() | st.lists(st.integers()), lambda inner: st.dictionaries(KEYS, inner), max_leaves=8)
MAPPINGS = st.dictionaries(KEYS, TREES)


@given(MAPPINGS, MAPPINGS, MAPPINGS)
def test_without_nulls_and_changes_of_kind_merging_is_associative(a: dict, b: dict, c: dict) -> None:
    one, two, three = Document(a), Document(b), Document(c)
    left, right = merge(merge(one, two), three), merge(one, merge(two, three))
    if same_kinds(a, b, c):
        assert left.data == right.data


def same_kinds(*trees: object) -> bool:
    """Every key is a mapping in all trees or in none: a scalar between two mappings forgets the first of them."""
    mappings = [tree for tree in trees if isinstance(tree, dict)]
    if mappings and len(mappings) < len(trees):
        return False
    keys = {key for tree in mappings for key in tree}
    return all(same_kinds(*(tree[key] for tree in mappings if key in tree)) for key in keys)


@given(MAPPINGS)
def test_merging_with_nothing_and_with_itself_changes_nothing(tree: dict) -> None:
    assert merge(Document(tree), Document({})).data == merge(Document({}), Document(tree)).data == tree
    assert merge(Document(tree), Document(tree)).data == tree
