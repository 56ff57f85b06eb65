"""`nemotron steps run env/env_toml`: profiles that validate, in a file that was not there before."""

import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nemotron import bundled
from nemotron.env_file import find_profile
from nemotron.errors import UsageError
from nemotron.launch import write
from nemotron.profiles import LOCAL
from nemotron.request import GeneratedFile, Request
from nemotron.steps.env.env_toml.step import compile_step
from tests.launcher.world import USER, compiled

BACKENDS = ["dgxcloud", "lepton", "local", "slurm"]
FORWARDED = {"EVAL_ENDPOINT_URL", "EVAL_MODEL_HANDLE", "EVAL_RESULTS_DIR", "EVAL_TOKENIZER", "EVAL_API_KEY_NAME"}


def generate(folder: Path, backend: str, *overrides: str, path: str = "env.toml") -> GeneratedFile:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return compile_step(Request(backend, LOCAL, folder, now, {}, (), (f"output_path={path}", *overrides)))


def filled_in(generated: GeneratedFile) -> GeneratedFile:
    """As its user does it."""
    text = generated.text.replace("<https://HOST/api/v1>", "https://host/api/v1")
    return GeneratedFile(generated.path, re.sub("<[^<>]+>", "mine", text), generated.replaces, generated.next_step)


def test_there_is_one_for_every_backend():
    assert sorted(path.stem for path in bundled.folder("profiles").glob("*.yaml")) == BACKENDS


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_profile_of_the_guide_is_in_it_and_evaluates(backend, tmp_path):
    write(filled_in(generate(tmp_path, backend)))
    profile = find_profile(f"{backend}_eval_direct", USER, tmp_path)
    job = compiled(profile=profile).job
    assert job.plan["model"]["id"] == "my-model" and job.resources.gpus == 0
    assert "ENDPOINT_TOKEN" in job.secrets and "ENDPOINT_TOKEN" not in job.env


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_forwards_the_endpoints_variables_but_neither_image_nor_tokens(backend, tmp_path):
    tables = tomllib.loads(generate(tmp_path, backend).text)
    forwarded = tables[f"{backend}_eval_direct"]["env_vars"].keys()
    assert forwarded >= FORWARDED and not forwarded & {"EVAL_HARNESS_IMAGE", "ENDPOINT_TOKEN", "HF_TOKEN"}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_table_can_be_copied_up_to_the_next_header(backend, tmp_path):
    text = generate(tmp_path, backend).text
    headers = [line for line in text.splitlines() if line.startswith("[")]
    assert f"[{backend}_eval_direct]" in headers and not any("." in header for header in headers)


@pytest.mark.parametrize("backend", ["lepton", "dgxcloud"])
def test_clouds_get_tokens_by_reference(backend, tmp_path):
    table = tomllib.loads(generate(tmp_path, backend).text)[f"{backend}_eval_direct"]
    assert "ENDPOINT_TOKEN" in table["secret_vars"]


def test_what_only_the_site_knows_must_be_filled_in(tmp_path):
    write(generate(tmp_path, "slurm"))
    with pytest.raises(UsageError, match="<account>"):
        find_profile("slurm_eval_direct", USER, tmp_path)


def test_values_of_the_site_can_be_given(tmp_path):
    text = generate(tmp_path, "slurm", "profiles.slurm_eval_direct.account=my-account").text
    assert 'account = "my-account"' in text


def test_a_value_that_would_not_validate_is_refused(tmp_path):
    with pytest.raises(UsageError, match="gpus_per_node"):
        generate(tmp_path, "slurm", "profiles.slurm_eval_direct.gpus_per_node=many")


def test_a_file_that_is_there_stays_as_it_is(tmp_path):
    (tmp_path / "env.toml").write_text("mine")
    with pytest.raises(UsageError, match="force=true"):
        write(generate(tmp_path, "local"))
    assert (tmp_path / "env.toml").read_text() == "mine"


def test_force_replaces_it(tmp_path):
    (tmp_path / "env.toml").write_text("mine")
    write(generate(tmp_path, "local", "force=true"))
    assert "[local_eval_direct]" in (tmp_path / "env.toml").read_text()


@pytest.mark.parametrize("path", ["", "none/env.toml", "."])
def test_a_place_where_no_file_can_be_is_refused(path, tmp_path):
    with pytest.raises(UsageError, match="output_path"):
        generate(tmp_path, "local", path=path)


def test_an_unknown_template_is_told_the_nearest(tmp_path):
    with pytest.raises(UsageError, match=r"Did you mean 'slurm'\?"):
        generate(tmp_path, "slrum")
