"""Environment, suite and overrides to a plan: the table of variables, the config keys and every refusal."""

import json
from dataclasses import replace

import pytest

from nemotron.errors import UsageError
from nemotron.profiles import NamedProfile
from nemotron.steps.eval.model_eval.step import job_name
from tests.launcher.world import ADAPTER, DOCKER, PARAMS, SLURM, TOKEN, compiled, params, plan

DEFAULT_IMAGE = "nvcr.io/nvidia/eval-factory/lm-evaluation-harness:26.03"
DIGEST = "sha256:" + "0" * 64
LEPTON = {"executor": "lepton", "resource_shape": "cpu.large", "secret_vars": {"ENDPOINT_TOKEN": "endpoint"}}


def refusal(*overrides, **choices) -> str:
    with pytest.raises(UsageError) as refused:
        compiled(*overrides, **choices)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def names(document) -> list[str]:
    return [task["name"] for task in document["tasks"]]


class TestVariables:
    def test_endpoint_model_and_folder_come_from_the_environment(self):
        document = plan()
        assert document["model"] == {
            "id": "my-model",
            "endpoint_url": "https://host/v1/completions",
            "endpoint_url_variable": None,
            "endpoint_type": "completions",
            "api_key_name": "ENDPOINT_TOKEN",
        }
        assert document["output_dir"] == "/results"

    @pytest.mark.parametrize("name", ["EVAL_ENDPOINT_URL", "EVAL_MODEL_HANDLE", "EVAL_RESULTS_DIR"])
    def test_what_is_required_and_empty_is_named(self, name):
        assert name in refusal(**{name: ""})

    def test_an_empty_value_counts_as_unset(self):
        document = plan(EVAL_API_KEY_NAME="", EVAL_LIMIT_SAMPLES="", EVAL_ENDPOINT_TYPE="", EVAL_TOKENIZER="")
        assert document["model"]["api_key_name"] == "ENDPOINT_TOKEN"
        assert "limit_samples" not in document["tasks"][0]["params"]
        assert "tokenizer" not in document["tasks"][0]["params"]["extra"]

    @pytest.mark.parametrize("word", ["null", "None"])
    def test_words_for_nothing_switch_authentication_off(self, word):
        document = plan(EVAL_API_KEY_NAME=word, ENDPOINT_TOKEN="")
        assert document["model"]["api_key_name"] is None
        assert document["secrets"] == []

    @pytest.mark.parametrize("word", ["null", "None", ""])
    def test_words_for_nothing_leave_a_limit_out(self, word):
        assert "limit_samples" not in params(EVAL_LIMIT_SAMPLES=word)

    def test_a_limit_is_a_number(self):
        assert params(EVAL_LIMIT_SAMPLES="5")["limit_samples"] == 5
        assert "'few'" in refusal(EVAL_LIMIT_SAMPLES="few")

    def test_a_tokenizer_is_an_argument_of_the_harness(self):
        assert params(EVAL_TOKENIZER="org/tok")["extra"]["tokenizer"] == "org/tok"

    def test_a_model_may_be_called_like_a_number(self):
        assert plan(EVAL_MODEL_HANDLE="007")["model"]["id"] == "007"

    def test_languages_select_subsets(self):
        assert params(suite="mmlu_prox")["task"] == "mmlu_prox_en"
        assert params(suite="mmlu_prox", MMLU_PROX_LANG="de")["task"] == "mmlu_prox_de"
        assert names(plan(suite="milu", MILU_LANG="Tamil")) == ["milu_Tamil", "milu_English"]

    def test_chat_suites_set_chat_themselves(self):
        document = plan(suite="instruct_en", EVAL_ENDPOINT_URL="https://host/v1/chat/completions")
        assert document["model"]["endpoint_type"] == "chat"

    def test_the_profiles_variables_win_over_the_shell(self):
        profile = NamedProfile("p", "[p]", {"executor": "local", "env_vars": {"EVAL_MODEL_HANDLE": "of-profile"}})
        assert plan(profile=profile)["model"]["id"] == "of-profile"

    def test_an_empty_variable_of_the_profile_leaves_the_shells(self):
        profile = NamedProfile("p", "[p]", {"executor": "local", "env_vars": {"EVAL_MODEL_HANDLE": ""}})
        assert plan(profile=profile)["model"]["id"] == "my-model"


class TestTasks:
    def test_the_suites_tasks_run_in_its_order(self):
        assert names(plan(suite="base_en")) == ["adlr_arc_challenge_llama_25_shot", "hellaswag", "gsm8k"]

    def test_given_tasks_are_run_exactly_as_given(self):
        assert names(plan(suite="base_en", tasks=["gsm8k", "unheard_of"])) == ["gsm8k", "unheard_of"]

    def test_a_given_task_keeps_what_the_suite_says_of_it(self):
        assert params(suite="mmlu_prox", tasks=["mmlu_prox_completions"])["task"] == "mmlu_prox_en"

    def test_filters_of_the_config_drop_duplicates(self):
        assert names(plan("task_filters=[b,a,b]")) == ["b", "a"]

    def test_three_hundred_tasks_are_three_hundred_entries(self):
        many = [f"task_{number}" for number in range(300)]
        assert names(plan(tasks=many)) == many

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", " a", "-x", "a\nb", "a\0b"])
    def test_a_name_that_is_no_folder_is_refused(self, name):
        assert "cannot be a task" in refusal(tasks=[name])

    @pytest.mark.parametrize("second", ["gsm8k", "GSM8K"])
    def test_two_tasks_may_not_share_a_folder(self, second):
        message = refusal(f"evaluation.tasks=[{{name: gsm8k}}, {{name: {second}}}]")
        assert "one folder" in message

    def test_no_tasks_is_refused(self):
        assert "-t TASK" in refusal("evaluation.tasks=[]")

    @pytest.mark.parametrize("name", ["mmlu_prox_completions", "mmlu_prox_chat", "global_mmlu", "global_mmlu_full"])
    def test_a_whole_family_needs_to_be_meant(self, name):
        assert f"{PARAMS}.task=" in refusal(tasks=[name])
        assert names(plan("allow_all_subsets=true", tasks=[name])) == [name]
        assert names(plan(f"{PARAMS}.task=one", tasks=[name])) == [name]

    def test_a_gated_dataset_needs_its_token_before_the_job_waits_in_a_queue(self):
        assert "HF_TOKEN" in refusal(tasks=["gpqa_diamond"])
        assert "HF_TOKEN" in plan(tasks=["gpqa_diamond"], HF_TOKEN="hf_not_a_real_token")["secrets"]
        for word in ("1", "true", "YES", "on"):
            assert names(plan(tasks=["gpqa_diamond"], HF_HUB_OFFLINE=word)) == ["gpqa_diamond"]
        assert "HF_TOKEN" in refusal(tasks=["gpqa_diamond"], HF_HUB_OFFLINE="0")

    def test_the_datasets_of_a_task_are_known_or_said_by_the_suite(self):
        assert [task["datasets"] for task in plan(tasks=["hellaswag", "mine"])["tasks"]] == [["Rowan/hellaswag"], []]
        own = "evaluation.tasks=[{name: hellaswag, datasets: ['org/data@v2']}, {name: mine, datasets: []}]"
        assert [task["datasets"] for task in plan(own)["tasks"]] == [["org/data@v2"], []]
        assert "'org/data?'" in refusal("evaluation.tasks=[{name: mine, datasets: ['org/data?']}]")

    def test_a_suite_can_say_which_variables_a_task_needs(self):
        override = "evaluation.tasks=[{name: judged, required_env: [JUDGE_API_KEY]}]"
        assert "JUDGE_API_KEY" in refusal(override)
        assert "JUDGE_API_KEY" in plan(override, JUDGE_API_KEY=TOKEN)["secrets"]


class TestParameters:
    def test_the_tasks_values_win(self):
        task = "{name: t, nemo_evaluator_config: {config: {params: {parallelism: 2, temperature: 0.5}}}}"
        merged = params(f"evaluation.tasks=[{task}]", f"{PARAMS}.temperature=1.0")
        assert (merged["parallelism"], merged["temperature"], merged["max_retries"]) == (2, 0.5, 5)

    def test_a_task_can_unset_what_the_suite_sets(self):
        task = "{name: t, nemo_evaluator_config: {config: {params: {max_retries: null}}}}"
        assert "max_retries" not in params(f"evaluation.tasks=[{task}]")

    def test_extra_merges_key_by_key(self):
        task = "{name: t, nemo_evaluator_config: {config: {params: {extra: {tokenizer_backend: tiktoken}}}}}"
        extra = params(f"evaluation.tasks=[{task}]", EVAL_TOKENIZER="tok")["extra"]
        assert extra == {"tokenizer": "tok", "tokenizer_backend": "tiktoken", "tokenized_requests": False}

    def test_interceptors_and_switches_of_the_adapter_together_are_refused_here_as_in_the_job(self):
        listed = f"{ADAPTER}.interceptors=[endpoint]"
        message = refusal(listed)
        assert "use_caching" in message and "adapter_config.max_logged_requests=null" in message
        switches = "use_caching use_request_logging max_logged_requests use_response_logging max_logged_responses"
        off = [f"{ADAPTER}.{name}=null" for name in (*switches.split(), "use_progress_tracking")]
        assert plan(listed, *off)["tasks"][0]["adapter_config"] == {"interceptors": ["endpoint"]}

    def test_the_adapter_merges_key_by_key(self):
        own = "{adapter_config: {use_caching: false, mine: 1}}"
        task = f"{{name: t, nemo_evaluator_config: {{target: {{api_endpoint: {own}}}}}}}"
        adapter = plan(f"evaluation.tasks=[{task}]")["tasks"][0]["adapter_config"]
        assert (adapter["use_caching"], adapter["mine"], adapter["max_logged_requests"]) == (False, 1, 10)

    @pytest.mark.parametrize("key", [f"{PARAMS}.extra.num_fewshot", f"{ADAPTER}.use_reasoning"])
    def test_what_the_harness_knows_needs_no_plus(self, key):
        assert json.dumps(plan(f"{key}=7")).count(key.rpartition(".")[2]) == 2

    @pytest.mark.parametrize("plus", ["", "+", "++"])
    def test_another_parameter_is_sent_to_extra(self, plus):
        message = refusal(f"{plus}{PARAMS}.num_fewshot=5")
        assert f"under extra: {PARAMS}.extra.num_fewshot" in message

    def test_a_misspelt_parameter_is_told_its_name(self):
        assert "'parallelism'" in refusal(f"{PARAMS}.paralelism=5")

    @pytest.mark.parametrize(
        "assignment",
        ["parallelism=0", "request_timeout=-1", "max_retries=-1", "temperature=hot", "top_p=2", "max_new_tokens=many"],
    )
    def test_a_value_that_cannot_be_is_named_with_its_key(self, assignment):
        key, value = assignment.split("=")
        message = refusal(f"{PARAMS}.{assignment}")
        assert f"{PARAMS}.{key}" in message and value in message

    def test_every_parameter_arrives_as_a_number(self):
        given = {"limit_samples": 5, "request_timeout": 1.5, "temperature": 0.7, "top_p": 0.9, "max_new_tokens": 12}
        merged = params(*(f"{PARAMS}.{key}={value}" for key, value in given.items()))
        assert given.items() <= merged.items()


class TestEndpoint:
    def test_a_type_that_there_is_not(self):
        assert "completions or chat" in refusal(EVAL_ENDPOINT_TYPE="embeddings")

    def test_the_path_and_the_type_may_not_contradict(self):
        message = refusal(EVAL_ENDPOINT_URL="https://host/v1/chat/completions")
        assert "of type chat" in message and "EVAL_ENDPOINT_TYPE" in message

    @pytest.mark.parametrize("url", ["https://host/v1", "host/v1/completions", "ftp://host/v1/completions"])
    def test_a_url_that_cannot_be_asked(self, url):
        assert url in refusal(EVAL_ENDPOINT_URL=url)

    def test_a_token_that_is_named_must_be_set(self):
        message = refusal(ENDPOINT_TOKEN="")
        assert "ENDPOINT_TOKEN" in message and "EVAL_API_KEY_NAME=null" in message

    @pytest.mark.parametrize("token", [f"{TOKEN}\nmore", f"{TOKEN}\n", f" {TOKEN}", f"{TOKEN}\u00fc", f"{TOKEN}\0"])
    def test_a_token_that_no_request_can_carry_is_not_repeated(self, token):
        message = refusal(ENDPOINT_TOKEN=token)
        assert "ENDPOINT_TOKEN holds" in message and "export the token alone" in message and TOKEN not in message

    @pytest.mark.parametrize("token", [TOKEN, "hf_not_a_real_token"])
    def test_a_token_given_as_its_name_is_not_repeated(self, token):
        message = refusal(EVAL_API_KEY_NAME=token)
        assert token not in message and "never the token itself" in message

    @pytest.mark.parametrize("url", ["https://u:pass-word@host/v1/completions", "https://host/v1/completions?key=k"])
    def test_a_url_with_credentials_goes_by_name(self, url):
        job = compiled(EVAL_ENDPOINT_URL=url)
        assert job.job.plan["model"]["endpoint_url"] is None
        assert job.job.plan["model"]["endpoint_url_variable"] == "EVAL_ENDPOINT_URL"
        assert "EVAL_ENDPOINT_URL" in job.job.secrets
        assert "pass-word" not in json.dumps(job.job.plan) and url not in repr(job)

    def test_a_url_with_credentials_from_an_override_reaches_the_job_too(self):
        url = "https://u:pass-word@host/v1/completions"
        assert compiled(f'target.api_endpoint.url="{url}"').environ["EVAL_ENDPOINT_URL"] == url


class TestImage:
    def test_the_suite_selects_it(self):
        assert compiled(profile=DOCKER).job.image == DEFAULT_IMAGE
        assert "sovereign" in str(compiled(profile=DOCKER, suite="milu").job.image)

    @pytest.mark.parametrize("key", ["harness_image", "run.env.container_image"])
    def test_either_key_selects_it(self, key):
        job = compiled(f"{key}=registry.example/mine:1", profile=DOCKER).job
        assert job.image == job.plan["harness"]["image"] == "registry.example/mine:1"

    def test_the_variable_selects_it(self):
        assert (
            compiled(profile=DOCKER, EVAL_HARNESS_IMAGE="registry.example/mine:1").job.image
            == "registry.example/mine:1"
        )

    def test_a_profiles_own_image_never_replaces_the_suites(self):
        profile = NamedProfile("p", "[p]", {"executor": "docker", "container_image": "registry.example/training:1"})
        assert compiled(profile=profile).job.image == DEFAULT_IMAGE

    def test_nothing_is_recorded_where_no_image_runs(self):
        assert plan()["harness"]["image"] is None

    @pytest.mark.parametrize(
        ("image", "is_pinned"),
        [(f"r.example/i@{DIGEST}", True), (f"r.example/i:1@{DIGEST}", True), ("r.example/i:1", False)],
    )
    def test_pinned_means_by_a_whole_digest(self, image, is_pinned):
        harness = plan(f"harness_image='{image}'", profile=DOCKER)["harness"]
        assert harness["image_pinned_by_digest"] is is_pinned

    def test_half_a_digest_is_refused(self):
        assert "64" in refusal("harness_image='r.example/i@sha256:abc'", profile=DOCKER)

    def test_containers_do_not_see_packages_of_a_home(self):
        assert compiled(profile=DOCKER).job.env["PYTHONNOUSERSITE"] == "1"


class TestPlaceForResults:
    def test_on_this_machine_a_relative_path_begins_here(self, tmp_path):
        assert plan("output_dir=out", folder=tmp_path)["output_dir"] == str(tmp_path / "out")

    def test_on_another_machine_it_means_nothing(self):
        assert "'out' is relative" in refusal("output_dir=out", profile=SLURM)

    @pytest.mark.parametrize("folder", ["/a\nb", "/a\x1b[0m", "/a\udcff"])
    def test_one_that_no_script_and_no_file_could_spell_is_refused(self, folder):
        message = refusal(EVAL_RESULTS_DIR=folder, profile=SLURM)
        assert repr(folder) in message and "EVAL_RESULTS_DIR" in message

    def test_replacing_and_resuming_exclude_each_other(self):
        assert "contradict" in refusal("overwrite=true", "resume=true")

    def test_switches_reach_the_plan(self):
        document = plan("overwrite=true", "dry_run=true", "preflight=false")
        assert (document["overwrite"], document["dry_run"], document["preflight"]) == (True, True, False)


class TestSecrets:
    def test_they_go_by_name(self):
        job = compiled(HF_TOKEN="hf_not_a_real_token").job
        assert job.secrets == ("ENDPOINT_TOKEN", "HF_TOKEN")
        assert TOKEN not in repr(job) and "hf_not_a_real_token" not in repr(job)

    def test_one_spelled_out_in_a_profile_goes_by_name_too(self):
        env_vars = {"WANDB_API_KEY": "not-a-real-key", "LANG": "C"}
        job = compiled(profile=NamedProfile("p", "[p]", {"executor": "local", "env_vars": env_vars}))
        assert "WANDB_API_KEY" in job.job.secrets and job.job.env == {"LANG": "C"}
        assert job.environ["WANDB_API_KEY"] == "not-a-real-key" and "not-a-real-key" not in repr(job)

    def test_a_cloud_job_gets_them_from_its_platform(self):
        profile = NamedProfile("lepton", "[lepton]", LEPTON)
        assert plan(profile=profile, ENDPOINT_TOKEN="")["secrets"] == ["ENDPOINT_TOKEN"]

    def test_in_plain_text_they_need_to_be_allowed(self):
        data = LEPTON | {"secret_vars": {}}
        message = refusal(profile=NamedProfile("lepton", "[lepton]", data))
        assert "ENDPOINT_TOKEN" in message and "allow_plaintext_secrets" in message
        allowed = NamedProfile("lepton", "[lepton]", data | {"allow_plaintext_secrets": True})
        assert plan(profile=allowed)["secrets"] == ["ENDPOINT_TOKEN"]


class TestProfileSettings:
    def test_keys_of_the_profile_can_be_set_for_one_run(self):
        assert compiled("run.env.cpus_per_task=4", profile=SLURM).job.resources.cpus == 4

    def test_an_unknown_one_is_told_its_name(self):
        assert "'partition'" in refusal("run.env.partitoin=cpu", profile=SLURM)

    def test_variables_of_the_suite_win_over_the_profiles(self):
        profile = NamedProfile("p", "[p]", {"executor": "local", "env_vars": {"A": "1", "B": "1", "C": "1"}})
        job = compiled("run.env.env_vars={A: 2, B: null}", profile=profile).job
        assert job.env == {"A": "2", "C": "1"}

    def test_a_variable_no_shell_could_export_is_refused(self):
        assert "BASH_FUNC" in refusal("run.env.env_vars={'BASH_FUNC_x%%': y}")

    def test_rebuilding_a_squash_file_where_there_is_none_is_refused(self):
        assert "--force-squash" in refusal(squash=True)
        with_folder = replace(SLURM, data={**SLURM.data, "image_cache_dir": "/shared/images"})
        assert "image_cache_dir" in refusal(profile=SLURM, squash=True)
        assert compiled(profile=with_folder, squash=True).job.rebuilds_squash


class TestJobName:
    @pytest.mark.parametrize(
        ("config", "model", "name"),
        [
            ("base_en", "org/Llama-3.1-8B", "eval-base-en-llama-3-1-8b"),
            ("my/own.yaml", "run_a", "eval-own-run-a"),
            ("quickstart", "模型", "eval-quickstart"),
        ],
    )
    def test_it_says_what_runs(self, config, model, name):
        assert job_name(config, model) == name

    def test_a_long_one_keeps_a_hash(self):
        one, other = (job_name("instruct_en", f"a-very-long-name-of-a-checkpoint-{n}") for n in (1, 2))
        assert one != other and len(one) <= 35 and len(other) <= 35
