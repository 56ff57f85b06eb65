"""`nemo-evaluator run_eval` over a wheel: what it runs, what it writes, what it refuses."""

import asyncio
import signal
import time

import pytest

from nemo_evaluator.cli.nemo_evaluator_main import main
from tests.harness.frameworks.conftest import KEY, TOY

pytestmark = pytest.mark.timeout(600)
KEYED = ("--api_key_name", "TOY_TOKEN")


async def run(evaluator, *arguments, **options):
    """Beside the event loop, where the fake server lives."""
    return await asyncio.to_thread(evaluator, *arguments, **options)


async def test_a_task_leaves_results_config_and_metrics(evaluator, server):
    await run(evaluator, *evaluator.task(url=f"{server.url}/completions"), *KEYED, TOY_TOKEN=KEY)
    score = evaluator.yaml("results.yml")["results"]["tasks"]["sums_str"]["metrics"]["accuracy"]["scores"]["accuracy"]
    assert score == {"value": 1.0, "stats": {"stderr": 0.1, "count": 3}}
    config = evaluator.yaml("run_config.yml")
    assert (config["framework_name"], config["pkg_name"], config["config"]["type"]) == ("toy-harness", "toy", "sums")
    metrics = evaluator.json("eval_factory_metrics.json")
    assert metrics["response_stats"]["count"] == 3
    assert metrics["evaluation"]["runtime_seconds"] > 0


async def test_the_harness_speaks_through_the_terminal_as_it_goes(evaluator, server):
    done = await run(evaluator, *evaluator.task(url=f"{server.url}/completions"))
    assert "toy harness speaks" in done.stdout


async def test_defaults_merge_framework_task_file_flags_overrides(evaluator, tmp_path):
    (tmp_path / "run.yml").write_text(
        "config: {type: sums, params: {limit_samples: 7, extra: {style: rich, shots: 2}}}\n"
        "target: {api_endpoint: {model_id: from-file}}\n"
    )
    overrides = "config.params.extra.shots=1,config.params.parallelism=4"
    arguments = (*evaluator.task(), "--run_config", "run.yml", "--overrides", overrides, "--dry_run")
    shown = (await run(evaluator, *arguments)).stdout
    for line in ("temperature: 0.25", "shots: 1", "style: rich", "limit_samples: 7", "parallelism: 4", "model_id: m"):
        assert line in shown
    assert "--task sums_str --limit 7 --temperature 0.25" in shown
    assert not (tmp_path / "out").exists()


async def test_a_run_config_that_a_run_has_written_runs_again(evaluator, server):
    await run(
        evaluator, *evaluator.task(url=f"{server.url}/completions"), "--overrides", "config.params.limit_samples=2"
    )
    await run(evaluator, "run_eval", "--run_config", "out/run_config.yml")
    assert (server.count, len(evaluator.json("seen.json")["answers"])) == (2, 2)


async def test_a_resumed_task_asks_nothing_again(evaluator, server):
    task = evaluator.task(url=f"{server.url}/completions")
    await run(evaluator, *task, "--overrides", 'config.params.extra.args="--exit 3"', code=3)
    await run(evaluator, *task)
    assert server.count == 3


@pytest.mark.parametrize("model", ["with space", "$(touch pwned)", "`touch pwned`", 'quo"te', "back\\slash", "it's"])
async def test_a_value_between_quotes_means_itself(evaluator, server, tmp_path, model):
    arguments = [*evaluator.task(url=f"{server.url}/completions")]
    arguments[arguments.index("m")] = model
    await run(evaluator, *arguments, "--overrides", "config.params.limit_samples=1")
    assert server.bodies[0]["model"] == model
    assert not list(tmp_path.rglob("pwned"))


async def test_overrides_keep_commas_quotes_braces_and_equals_signs(evaluator, tmp_path):
    value = 'config.params.extra.a={x: [1, 2], y: "p,q"},config.params.extra.b="k=v,w",config.params.extra.c=don\'t'
    shown = (await run(evaluator, *evaluator.task(), "--overrides", value, "--dry_run")).stdout
    for line in ("x:", "y: p,q", "b: k=v,w", "c: don't"):
        assert line in shown


async def test_the_exit_code_of_the_harness_is_passed_on(evaluator, server):
    task = evaluator.task(url=f"{server.url}/completions")
    await run(evaluator, *task, "--overrides", 'config.params.extra.args="--exit 9"', code=9)
    assert not (evaluator.folder / "out/results.yml").exists()


async def test_results_that_cannot_be_read_fail_the_task_in_one_line(evaluator, server):
    task = evaluator.task(url=f"{server.url}/completions")
    done = await run(evaluator, *task, "--overrides", "config.params.extra.args=--mute", code=1)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: sums ended, but core_evals.toy.output cannot read its results: FileNotFoundError")
    assert not (evaluator.folder / "out/results.yml").exists()


async def test_a_stop_reaches_the_harness_and_keeps_what_it_has(evaluator, server):
    task = evaluator.task(url=f"{server.url}/completions")
    process = evaluator.start(*task, "--overrides", 'config.params.extra.args="--sleep 60"')
    while not (evaluator.folder / "out/seen.json").exists():
        await asyncio.sleep(0.05)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(process.communicate)
    assert (process.returncode, time.monotonic() - began < 10) == (143, True)
    assert list((evaluator.folder / "out/adapter/cache").glob("*.jsonl"))


async def test_the_key_is_nowhere_but_in_the_environment(evaluator, server):
    server.control(api_key=KEY)
    adapter = ",".join(f"target.api_endpoint.adapter_config.{key}=true" for key in ("save_requests", "save_responses"))
    arguments = (*evaluator.task(url=f"{server.url}/completions"), *KEYED, "--overrides", adapter)
    done = await run(evaluator, *arguments, TOY_TOKEN=KEY)
    files = [path for path in evaluator.folder.rglob("*") if path.is_file()]
    assert KEY not in done.stdout + done.stderr
    assert not [path for path in files if KEY in path.read_text(errors="replace")]
    assert evaluator.json("seen.json")["openai"] is True


async def test_without_anything_to_do_there_is_no_proxy(evaluator, server):
    off = "target.api_endpoint.adapter_config.use_caching=false"
    await run(evaluator, *evaluator.task(url=f"{server.url}/completions"), "--overrides", off)
    assert f"{server.url}/completions" in evaluator.json("seen.json")["argv"]


async def test_the_proxy_retries_and_the_harness_is_told_to_ask_once_and_wait(evaluator, server):
    """Two that retry would ask as often as the product of both."""
    server.control(behaviours=[{"status": 503, "retry_after": 0, "when": {"first": 2}}])
    params = "config.params.max_retries=2,config.params.request_timeout=40,config.params.limit_samples=1"
    await run(evaluator, *evaluator.task(url=f"{server.url}/completions"), "--overrides", params)
    argv = evaluator.json("seen.json")["argv"]
    assert server.count == 3
    assert argv[argv.index("--retries") + 1] == "1"
    assert int(argv[argv.index("--timeout") + 1]) >= 3 * 40
    written = evaluator.yaml("run_config.yml")["config"]["params"]
    assert (written["max_retries"], written["request_timeout"]) == (2, 40)


async def test_a_harness_without_the_proxy_keeps_its_own_retries(evaluator, server):
    off = "target.api_endpoint.adapter_config.use_caching=false,config.params.max_retries=4"
    await run(evaluator, *evaluator.task(url=f"{server.url}/completions"), "--overrides", off)
    argv = evaluator.json("seen.json")["argv"]
    assert argv[argv.index("--retries") + 1] == "4"


async def test_a_refusal_can_end_the_task(evaluator, server):
    server.control(behaviours=[{"status": 404}])
    config = "target.api_endpoint.adapter_config.use_raise_client_errors=true"
    done = await run(evaluator, *evaluator.task(url=f"{server.url}/completions"), "--overrides", config, code=1)
    assert "HTTP 404" in done.stderr


REFUSED = {
    "nothing": (("run_eval",), "needs --eval_type (or config.type) and --model_id"),
    "unknown task": (("--eval_type", "summs"), "--eval_type 'summs' is not installed here (did you mean 'sums'?)"),
    "wrong type": (("--model_type", "chat"), "sums supports --model_type completions, not 'chat'."),
    "no URL": (("--model_url", "localhost:8000"), "The model URL 'localhost:8000' must start with http"),
    "key unset": (("--api_key_name", "UNSET"), "--api_key_name UNSET is not set in the environment"),
    "key given": (("--api_key_name", "sk-not-a-real-key"), "the name of an environment variable, never the key itself"),
    "no override": (("--overrides", "temperature"), "--overrides has 'temperature', which is not KEY=VALUE"),
    "open bracket": (("--overrides", "config.params.extra.a=[1"), "--overrides ends inside a bracket"),
    "unknown param": (
        ("--overrides", "config.params.shots=1"),
        "arguments of one harness go under config.params.extra",
    ),
    "unknown key": (("--overrides", "config.parms.task=1"), "config.parms is not known (did you mean 'params'?)"),
    "bad value": (("--overrides", "config.params.parallelism=many"), "config.params.parallelism"),
    "bad adapter": (("--overrides", "target.api_endpoint.adapter_config.use_cache=1"), "did you mean 'use_caching'?"),
    "no file": (("--run_config", "missing.yml"), "--run_config missing.yml cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_line_and_creates_nothing(evaluator, case, monkeypatch, capsys):
    monkeypatch.chdir(evaluator.folder)
    monkeypatch.syspath_prepend(TOY)
    arguments, said = REFUSED[case]
    with pytest.raises(SystemExit) as ended:
        main([*(() if case == "nothing" else evaluator.task()), *arguments])
    err = capsys.readouterr().err
    assert (ended.value.code, err.count("\n")) == (2, 1)
    assert said in err and KEY not in err
    assert not (evaluator.folder / "out").exists()


def test_what_a_template_misses_is_named(evaluator, tmp_path):
    package = tmp_path / "more/core_evals/needy"
    package.mkdir(parents=True)
    (package / "framework.yml").write_text(
        "framework: {name: needy, pkg_name: needy}\n"
        "defaults: {command: 'run {{config.params.extra.judge}}', config: {params: {}}}\n"
        "evaluations: [{name: N, defaults: {config: {type: n}}}]\n"
    )
    done = evaluator(*evaluator.task("n"), code=2, PYTHONPATH=str(tmp_path / "more"))
    assert "has no attribute 'judge'" in done.stderr
    assert not (evaluator.folder / "out").exists()
