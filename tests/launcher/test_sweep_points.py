"""What the points of a sweep are, from comma lists and from files."""

import pytest

from nemotron.config import alternatives, compose_suite, override_of
from nemotron.errors import UsageError
from nemotron.sweep.file import read_points
from nemotron.sweep.points import NAME_LENGTH, points_of

MODEL, URL = "target.api_endpoint.model_id", "target.api_endpoint.url"


def names(*overrides: str) -> list[str]:
    return [point.name for point in points_of(overrides)]


class TestCommaLists:
    def test_every_combination_is_a_point_and_the_last_list_runs_fastest(self):
        points = points_of([f"{MODEL}=a,b", "overwrite=true", "x=1,2"])
        assert [point.name for point in points] == ["a-1", "a-2", "b-1", "b-2"]
        assert points[1].overrides == (f"{MODEL}=a", "overwrite=true", "x=2")

    @pytest.mark.parametrize(
        ("override", "values"),
        [
            ("a='x,y',z", ["x,y", "z"]),
            ("a=choice(x,y)", ["x", "y"]),
            ("a=range(1,4)", ["1", "2", "3"]),
            ("+a.b=http://h:80/v1,http://g:80/v1", ["http://h:80/v1", "http://g:80/v1"]),
        ],
    )
    def test_lists_are_written_as_hydra_reads_them(self, override, values):
        assert [value for _, value in alternatives(override)] == values

    def test_what_is_no_list_is_one_value(self):
        assert alternatives("a=[1,2]") == [("a=[1,2]", "")]

    def test_a_url_gives_its_host_and_never_its_credentials(self):
        urls = "http://me:sk-not-a-real-key@a:8000/v1/completions,https://b/team/v1/chat/completions?key=hidden"
        assert names(f"{URL}={urls.replace('=', chr(92) + '=')}") == ["a-8000", "b-team"]

    def test_values_that_read_alike_as_words_are_told_apart(self):
        first, second, third = names(f"{MODEL}=org/a,org-a,b")
        assert first != second and first.startswith("org-a-") and third == "b"
        assert names(f"{MODEL}=A,a")[0].casefold() != names(f"{MODEL}=A,a")[1].casefold()

    def test_long_values_make_a_name_that_is_still_a_folder(self):
        first, second = names(f"{MODEL}={'x' * 300}1,{'x' * 300}2")
        assert len(first) <= NAME_LENGTH and first != second

    def test_a_value_without_letters_has_a_name(self):
        assert names(f"{MODEL}='..',b") == ["empty", "b"]

    def test_lists_of_folders_choose_the_folder(self):
        assert all(point.chooses_folder for point in points_of(["output_dir=/a,/b"]))
        assert not any(point.chooses_folder for point in points_of(["output_dir=/a", f"{MODEL}=a,b"]))


class TestFiles:
    @pytest.fixture
    def read(self, tmp_path):
        def points(text: str, *overrides: str, **environ: str):
            (tmp_path / "sweep.toml").write_text(text)
            return read_points(tmp_path / "sweep.toml", overrides, environ)

        return points

    def test_a_table_is_laid_over_what_holds_for_all(self, read):
        (point,) = read(f'[a]\n{MODEL} = "m"\nenv.EVAL_TOKENIZER = "t"\n', "overwrite=true")
        assert (point.name, point.overrides) == ("a", ("overwrite=true", f"{MODEL}='m'"))
        assert point.env == {"EVAL_TOKENIZER": "t"} and not point.chooses_folder

    @pytest.mark.parametrize("line", ['output_dir = "/a"', 'env.EVAL_RESULTS_DIR = "/a"'])
    def test_it_may_choose_its_folder(self, read, line):
        assert read(f"[a]\n{line}\n")[0].chooses_folder

    def test_secrets_are_referred_to(self, read):
        (point,) = read('[a]\nenv.ENDPOINT_TOKEN = "${oc.env:TOKEN_A}"\n', TOKEN_A="sk-not-a-real-key-a")
        assert point.env == {"ENDPOINT_TOKEN": "sk-not-a-real-key-a"}

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "has no tables"),
            ("a = 1", "must be a table"),
            ('["a/b"]\n', "the name is that of a folder"),
            ("[model-2.5]\noverwrite = true\n", 'in quotes, ["model-2.5"]'),
            ("[a\n", "is not TOML"),
            ("[a]\nenv = 1\n", "must be a table of variables"),
            ('[a]\nenv."A B" = "1"\n', "env.A B is no variable"),
            ('[a]\nenv.ENDPOINT_TOKEN = "sk-not-a-real-key"\n', "spells out a secret"),
            ('[a]\nenv.X = "${oc.env:MISSING}"\n', "MISSING is not set"),
        ],
    )
    def test_what_cannot_be_used_is_refused_in_one_line(self, read, text, said):
        with pytest.raises(UsageError) as refused:
            read(text)
        assert said in str(refused.value) and "\n" not in str(refused.value)
        assert "sk-not-a-real-key" not in str(refused.value)

    def test_a_file_that_is_not_there_is_named(self, tmp_path):
        with pytest.raises(UsageError, match=r"no file .*none\.toml"):
            read_points(tmp_path / "none.toml", (), {})


@pytest.mark.parametrize(
    "value", ["a,b", "it's", "back\\", "\\'", "a b", '"q"', "", "{a}", "a=b#c", "http://h:1/v1?q=1,2"]
)
def test_any_text_arrives_as_it_was_written(value):
    composed = compose_suite("direct", [override_of("output_dir", value)], {})
    assert composed["output_dir"] == value


@pytest.mark.parametrize("value", [None, True, 1, 1.5, ["a,b", 1]])
def test_other_values_keep_their_type(value):
    params = "evaluation.nemo_evaluator_config.config.params"
    composed = compose_suite("direct", [override_of(f"{params}.extra.x", value)], {})
    assert composed["evaluation"]["nemo_evaluator_config"]["config"]["params"]["extra"]["x"] == value
