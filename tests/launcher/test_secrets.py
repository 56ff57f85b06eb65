import pytest

from nemotron.secrets import fits_a_header, is_secret, redact, redact_url, values_of, without_secrets

VALUE = "sk/not a+real-key"


@pytest.mark.parametrize("name", ["HF_TOKEN", "OPENAI_API_KEY", "aws_secret_access_key", "DB_PASSWORD", "WANDB_APIKEY"])
def test_names_tell_secrets(name):
    assert is_secret(name, "x")


@pytest.mark.parametrize("name", ["PATH", "EVAL_TOKENIZER", "EVAL_API_KEY_NAME", "KEYBOARD", "MONKEY"])
def test_other_names_do_not(name):
    assert not is_secret(name, "x")


@pytest.mark.parametrize("url", ["https://u:p@host/v1", "https://host/v1?key=k"])
def test_a_url_with_credentials_is_one_under_any_name(url):
    assert is_secret("SOMETHING", url)


def test_values_are_those_that_are_set():
    assert values_of(["A", "B", "C"], {"A": "1", "B": "", "D": "4"}) == {"A": "1"}


def test_an_environment_for_others_has_no_secrets_and_no_shell_functions():
    assert without_secrets({"PATH": "/bin", "HF_TOKEN": "x", "BASH_FUNC_f%%": "() { :; }"}) == {"PATH": "/bin"}


@pytest.mark.parametrize("form", [VALUE, "sk%2Fnot%20a%2Breal-key", "sk/not%20a%2Breal-key"])
def test_a_value_is_masked_in_every_spelling(form):
    assert redact(f"before {form} after", [VALUE]) == "before *** after"


def test_a_value_is_masked_as_errors_of_python_spell_it():
    value = "sk-not-a-real\n\"key'\u00fc"
    assert (
        redact(f"Illegal header value {f'Bearer {value}'.encode()!r}", [value]) == "Illegal header value b'Bearer ***'"
    )
    assert redact(f"{value!r}", [value]).strip("\"'") == "***"


@pytest.mark.parametrize(
    ("token", "fits"), [("sk-x", True), ("two words", True), ("a\nb", False), (" a", False), ("a ", False), ("", False)]
)
def test_what_a_header_carries(token, fits):
    assert fits_a_header(token) is fits


def test_of_two_values_the_longer_one_is_masked_whole():
    assert redact("abcdefgh", ["abcde", "abcdefgh"]) == "***"


def test_words_that_are_too_short_to_be_secrets_stay():
    assert redact("true story", ["true"]) == "true story"


def test_a_url_keeps_its_host():
    assert redact_url("https://u:p@host:1/v1/completions?key=k#f") == "https://***@host:1/v1/completions?***"
