"""The command line as it is documented."""

import json

import pytest

STEPS = ["env/env_toml", "eval/model_eval"]
GOLD = ("consumes", "produces", "parameters", "strategies", "errors")


def test_steps_are_listed(user):
    assert [line.split()[0] for line in user("steps", "list").stdout.splitlines()] == STEPS


def test_steps_of_a_category_are_listed_for_programs(user):
    (step,) = json.loads(user("steps", "list", "--category", "eval", "--json").stdout)
    assert step["id"] == "eval/model_eval" and step["category"] == "eval"


def test_an_unknown_category_is_told_the_nearest(user):
    done = user("steps", "list", "--category", "evl")
    assert done.returncode == 2 and "Did you mean 'eval'?" in done.stderr


@pytest.mark.parametrize("step", STEPS)
def test_a_step_shows_its_contract(user, step):
    shown = json.loads(user("steps", "show", step, "--json").stdout)
    text = user("steps", "show", step).stdout
    for section in GOLD:
        assert shown[section] and all(name in text for name in shown[section])


@pytest.mark.parametrize(
    ("words", "guess"),
    [
        (["steps", "run", "eval/model_evl"], "'eval/model_eval'"),
        (["steps", "show", "eval/model_evl"], "'eval/model_eval'"),
        (["steps", "run", "eval/model_eval", "-c", "base_eng"], "'base_en'"),
        (["steps", "run", "eval/model_eval", "-b", "slrum_eval_direct"], "'slurm_eval_direct'"),
    ],
)
def test_what_is_unknown_is_one_line_with_the_nearest_name(user, words, guess):
    done = user(*words)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and f"Did you mean {guess}?" in done.stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["gsm8k"], "'gsm8k'"),
        (["--frce-squash"], "--frce-squash"),
        (["-r", "local_eval_direct", "-b", "local_eval_direct"], "exclude"),
        (["--force-squash"], "--force-squash"),
        (["-b", "slurm_eval_direct", "output_dir=results"], "'results' is relative"),
        (["-b", "lepton_eval_direct"], "does not submit to lepton yet"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_created(user, words, named):
    before = sorted(user.folder.rglob("*"))
    done = user.evaluate(*words)
    assert done.returncode == 2 and named in done.stderr
    assert sorted(user.folder.rglob("*")) == before


def test_a_dry_run_prints_the_job_and_touches_nothing(user):
    before = sorted(user.folder.rglob("*"))
    done = user.evaluate("-d", "-b", "slurm_eval_direct", "-t", "gsm8k")
    job = json.loads(done.stdout)
    assert (job["backend"], job["plan"]["tasks"][0]["name"]) == ("slurm", "gsm8k")
    assert sorted(user.folder.rglob("*")) == before


def test_a_dry_run_refuses_what_the_run_would(user):
    done = user.evaluate("-d", EVAL_ENDPOINT_TYPE="chat")
    assert done.returncode == 2 and "of type completions" in done.stderr


def test_generating_profiles_takes_no_profile(user):
    done = user("steps", "run", "env/env_toml", "-b", "local_eval_direct", "output_path=x.toml")
    assert done.returncode == 2 and "without a profile" in done.stderr


def test_generated_profiles_can_be_seen_before_they_are_written(user):
    done = user("steps", "run", "env/env_toml", "-c", "slurm", "-d", "output_path=x.toml")
    assert "[slurm_eval_direct]" in done.stdout and not (user.folder / "x.toml").exists()


def test_generating_says_what_is_next(user):
    done = user("steps", "run", "env/env_toml", "-c", "slurm", "output_path=env.slurm.toml")
    assert "slurm_eval_direct" in done.stdout and (user.folder / "env.slurm.toml").exists()
