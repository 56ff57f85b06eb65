"""What the engine is asked for, decided without one."""

from pathlib import Path

import pytest

from nemotron.errors import UsageError
from nemotron.executors.docker import Engine, check_mounts, container_arguments, reachable, reachable_plan, state_of
from nemotron.job import Job, Mount, Phase, Resources
from tests.launcher.docker.conftest import plan

DOCKER, PODMAN = Engine(), Engine(is_podman=True)
JOB = Job(
    name="evaluation",
    plan=plan(),
    output_dir="/mnt/eval/run-a",
    image="nvcr.io/team/harness@sha256:" + "0" * 64,
    env={"HF_HOME": "/mnt/hf"},
    secrets=("ENDPOINT_TOKEN",),
    mounts=(Mount("/mnt/hf", "/mnt/hf", is_read_only=True),),
    resources=Resources(cpus=1.5, memory_mib=4096, shared_memory_mib=512, time_limit_seconds=3600),
)


def arguments(engine: Engine = DOCKER, network: str = "host", job: Job = JOB) -> dict:
    return container_arguments(job, network, engine, (1000, 1001), Path("/state/job"))


def test_mounts_results_at_the_same_path_the_job_read_only_and_nothing_unnamed():
    assert arguments()["volumes"] == [
        "/mnt/eval/run-a:/mnt/eval/run-a:rw",
        "/state/job:/run/nemotron:ro",
        "/mnt/hf:/mnt/hf:ro",
    ]


def test_keeps_packages_of_a_home_folder_out():
    environment = arguments()["environment"]
    assert environment == {"HOME": "/tmp", "PYTHONNOUSERSITE": "1", "HF_HOME": "/mnt/hf"}


def test_asks_for_the_resources_of_the_job():
    made = arguments()
    assert (made["nano_cpus"], made["mem_limit"], made["shm_size"]) == (1_500_000_000, "4096m", "512m")
    assert made["command"][0] == "3600"


def test_leaves_resources_that_are_not_named_to_the_engine():
    made = arguments(job=Job("evaluation", plan(), "/mnt/eval/run-a"))
    assert not {"nano_cpus", "mem_limit", "shm_size"} & made.keys() and made["command"][0] == "0"


@pytest.mark.parametrize(
    ("engine", "identity"),
    [
        (DOCKER, {"user": "1000:1001"}),
        (PODMAN, {"user": "1000:1001"}),
        (Engine(is_podman=True, is_rootless=True), {"user": "1000:1001", "userns_mode": "keep-id"}),
        (Engine(is_rootless=True), {"user": "0:0"}),
    ],
)
def test_files_belong_to_whoever_submits_whatever_the_engine_maps(engine, identity):
    made = arguments(engine)
    assert {name: made[name] for name in ("user", "userns_mode") if name in made} == identity


@pytest.mark.parametrize(
    ("version", "info", "engine"),
    [
        ({"Components": [{"Name": "Engine"}]}, {"SecurityOptions": ["name=seccomp,profile=default"]}, DOCKER),
        ({"Components": [{"Name": "Engine"}]}, {"SecurityOptions": ["name=rootless"]}, Engine(is_rootless=True)),
        ({"Components": [{"Name": "Podman Engine"}]}, {"SecurityOptions": None}, PODMAN),
    ],
)
def test_knows_engines_by_what_they_say(version, info, engine):
    assert Engine.of(version, info) == engine


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"])
def test_a_network_of_its_own_reaches_this_machine_by_another_name(host):
    url = f"http://ann:pw@{host}:8000/v1/completions"
    assert reachable(url, "bridge", DOCKER) == "http://ann:pw@host.docker.internal:8000/v1/completions"
    assert reachable(url, "bridge", PODMAN) == "http://ann:pw@host.containers.internal:8000/v1/completions"
    assert arguments(DOCKER, "bridge")["extra_hosts"] == {"host.docker.internal": "host-gateway"}


def test_the_plan_names_what_the_container_can_reach():
    assert reachable_plan(plan(), "bridge", DOCKER)["model"]["endpoint_url"].startswith("http://host.docker.internal:")
    assert reachable_plan(plan(None, "EVAL_ENDPOINT_URL"), "bridge", DOCKER)["model"]["endpoint_url"] is None


def test_host_networking_and_other_hosts_keep_the_url():
    assert reachable("http://127.0.0.1:8000/v1", "host", DOCKER) == "http://127.0.0.1:8000/v1"
    assert reachable("https://model.example/v1", "bridge", DOCKER) == "https://model.example/v1"


@pytest.mark.parametrize("source", ["/home/ann", "/home", "/"])
def test_refuses_to_mount_the_home_folder(source):
    with pytest.raises(UsageError, match=rf"mounts: {source} brings your home folder"):
        check_mounts(Job("j", plan(), "/mnt/x", mounts=(Mount(source, "/data"),)), {"HOME": "/home/ann"})


def test_refuses_results_that_are_the_home_folder_but_not_a_folder_in_it():
    check_mounts(Job("j", plan(), "/home/ann/results"), {"HOME": "/home/ann"})
    with pytest.raises(UsageError, match="output_dir /home/ann holds your home folder"):
        check_mounts(Job("j", plan(), "/home/ann"), {"HOME": "/home/ann"})


@pytest.mark.parametrize(
    ("state", "phase", "code"),
    [
        ({"Status": "created"}, Phase.QUEUED, None),
        ({"Status": "running"}, Phase.RUNNING, None),
        ({"Status": "exited", "ExitCode": 0}, Phase.COMPLETED, 0),
        ({"Status": "exited", "ExitCode": 1}, Phase.FAILED, 1),
        ({"Status": "exited", "ExitCode": 75}, Phase.STOPPED, 75),
        ({"Status": "exited", "ExitCode": 137, "OOMKilled": True}, Phase.FAILED, 137),
        ({"Status": "unheard of"}, Phase.UNKNOWN, None),
    ],
)
def test_reads_the_state_from_the_engines_words(state, phase, code):
    read = state_of(state)
    assert (read.phase, read.exit_code) == (phase, code)


def test_out_of_memory_says_what_to_raise():
    assert "raise memory" in state_of({"Status": "exited", "ExitCode": 137, "OOMKilled": True}).reason
