"""What Slurm is given, and what it is not, by either way."""

import json
import stat
import sys
import time
from pathlib import Path

import pytest

from nemotron.errors import SubmitError, UsageError
from nemotron.executors.sealed import unseal
from nemotron.executors.slurm import check_python
from nemotron.job import Mount
from nemotron.slurm.folder import LOG, PLAN, SECRETS, STEP
from tests.launcher.batch.conftest import TOKEN

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def submitted(executor, job):
    """The submission, and the folder that the job got."""

    def submit(profile=None, **fields):
        submission = executor(**profile or {}).submit(job(**fields))
        return submission, Path(submission.details["folder"])

    return submit


def test_a_submission_says_how_its_job_is_found_again(submitted, slurm):
    submission, folder = submitted()
    known = slurm.job(int(submission.job_id))
    assert submission.details["name"] == known["name"] == folder.name
    assert submission.details["user"] == known["user"]
    assert abs(float(submission.details["submitted"]) - known["submit"]) < 60


def test_a_greeting_and_a_cluster_are_no_part_of_the_number(submitted, slurm):
    slurm.turn(banner="Welcome to job 5 of 7!\n12 users", cluster="east")
    submission, _ = submitted()
    assert (submission.job_id, submission.details["cluster"]) == ("1", "east")


def test_the_log_has_a_folder_before_slurm_hears_of_the_job(submitted, slurm):
    submission, folder = submitted()
    asked = slurm.job(int(submission.job_id))["options"]
    assert asked["--output"] == str(folder / LOG) and asked["--chdir"] == str(folder)


def test_job_folders_are_in_the_home_folder_unless_the_profile_says_otherwise(submitted, environ, tmp_path):
    assert submitted()[1].parent == Path(environ["HOME"]) / ".nemotron/jobs"
    assert submitted({"remote_job_dir": str(tmp_path / "jobs")})[1].parent == tmp_path / "jobs"


def test_name_and_comment_identify_the_run(submitted, slurm, tmp_path):
    submission, _ = submitted()
    asked = slurm.job(int(submission.job_id))["options"]
    assert asked["--job-name"].startswith("eval-base-en-")
    assert asked["--comment"] == f"nemotron: llama-3-8b to {tmp_path}/results"


def test_two_jobs_have_two_names_and_two_folders(submitted):
    assert submitted()[1] != submitted()[1]


def test_of_the_shell_the_job_gets_the_key_of_its_secrets_and_nothing_else(submitted, slurm):
    submission, _ = submitted()
    environ = slurm.job(int(submission.job_id))["environ"]
    of_the_node = {"HOME", "PATH", "PWD", "USER"}
    assert {name for name in environ if not name.startswith("SLURM_")} - of_the_node == {"NEMOTRON_SEAL"}


def test_a_job_without_secrets_gets_nothing_at_all(submitted, slurm):
    submission, folder = submitted(secrets=())
    assert slurm.job(int(submission.job_id))["options"]["--export"] == "NONE"
    assert not (folder / SECRETS).exists()


def test_what_the_shell_says_of_export_changes_nothing(submitted, slurm, environ):
    environ["SBATCH_EXPORT"] = "ALL"
    (call,) = [submitted(), slurm.calls("sbatch")][1]
    assert "--export=NEMOTRON_SEAL" in call.argv


def test_values_of_secrets_are_in_one_file_only_and_sealed(submitted, slurm):
    submission, folder = submitted()
    file = folder / SECRETS
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700
    key = slurm.job(int(submission.job_id))["environ"]["NEMOTRON_SEAL"]
    assert unseal(file.read_bytes(), key) == {"ENDPOINT_TOKEN": TOKEN}
    everything = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    said = json.dumps([(call.argv, call.environ, call.stdin) for call in slurm.calls("sbatch")])
    assert TOKEN.encode() not in everything and json.dumps(TOKEN)[1:-1] not in said
    assert key.encode() not in everything and all(key not in word for c in slurm.calls("sbatch") for word in c.argv)


def test_the_job_gets_its_plan_and_its_public_variables(submitted):
    _, folder = submitted()
    assert json.loads((folder / PLAN).read_text())["tasks"] == [{"name": "gsm8k"}]
    assert json.loads((folder / STEP).read_text())["environ"] == {"EVAL_X": "1"}


def test_three_hundred_tasks_make_no_longer_script(submitted, slurm):
    tasks = [{"name": f"task_{number}"} for number in range(300)]
    submission, _ = submitted(plan={"tasks": tasks})
    assert max(map(len, slurm.job(int(submission.job_id))["script"].splitlines())) < 1000


def test_the_harness_of_a_chosen_python_comes_first(submitted):
    _, folder = submitted({"python": "/opt/harness/bin/python"})
    assert json.loads((folder / STEP).read_text())["first_in_path"] == "/opt/harness/bin"


def test_a_refusal_leaves_nothing_behind(executor, job, slurm, environ):
    slurm.says("sbatch", stderr="sbatch: error: invalid partition specified: nowhere\n", code=1)
    with pytest.raises(SubmitError, match=r"^sbatch refuses: invalid partition.*correct partition .nowhere. .*`sinfo"):
        executor(partition="nowhere").submit(job())
    assert not list((Path(environ["HOME"]) / ".nemotron/jobs").iterdir())


@pytest.mark.parametrize(
    ("profile", "fields", "says"),
    [
        ({"container_runtime": "podman"}, {}, "needs an image"),
        ({"container_runtime": "podman"}, {"image": "/images/a.sqsh"}, "'podman' runs images of registries"),
        ({"comment": "a\nb"}, {}, "comment 'a.nb' has a line break"),
        ({"additional_parameters": {"export": "ALL"}}, {}, "leave 'export' out"),
        ({"additional_parameters": {"--wckey": "x"}}, {}, "no option of sbatch"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(executor, job, environ, slurm, profile, fields, says):
    with pytest.raises(UsageError, match=says):
        executor(**profile).submit(job(**fields))
    assert not slurm.calls("sbatch") and not (Path(environ["HOME"]) / ".nemotron").exists()


def test_what_the_cluster_does_not_have_is_refused_before_anything_is_made(executor, job, environ, slurm, tmp_path):
    mounts = (Mount("/no/such/folder", "/data"), Mount(environ["HOME"], "/home"), Mount(str(tmp_path), "/parent"))
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as refused:
        executor(remote_job_dir=str(tmp_path / "file/jobs")).submit(job(mounts=mounts))
    lines = str(refused.value).splitlines()
    assert "/no/such/folder does not exist" in lines[0] and "remote_job_dir" in lines[1]
    assert "home folder" in lines[2] and str(tmp_path) in lines[3] and lines[-1] == "Nothing was submitted."
    assert not slurm.calls("sbatch") and not (tmp_path / "results").exists()


def test_a_machine_without_sbatch_is_no_login_node(executor, job, slurm, environ):
    slurm.lacks("sbatch")
    environ["PATH"] = str(slurm.bin)
    (slurm.bin / "python3").symlink_to(sys.executable)
    with pytest.raises(UsageError, match=r"no sbatch on PATH.*host = "):
        executor().submit(job())


@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm"])
def test_a_python_that_only_this_machine_has_cannot_run_jobs_of_a_cluster(folder):
    with pytest.raises(UsageError, match=rf"nodes do not see {folder}.*tunnel = \"ssh\""):
        check_python(Path(folder) / "venv/bin/python", "/home/me/.nemotron/jobs")
    check_python(Path(folder) / "venv/bin/python", f"{folder}/jobs")  # a cluster of one machine
    check_python(Path("/home/me/venv/bin/python"), "/home/me/.nemotron/jobs")


def test_a_link_to_the_home_folder_is_the_home_folder(executor, job, environ, tmp_path):
    (tmp_path / "link").symlink_to(environ["HOME"])
    with pytest.raises(UsageError, match=r"link brings your home folder"):
        executor().submit(job(mounts=(Mount(str(tmp_path / "link"), "/data"),)))


def test_results_that_are_there_are_seen_before_the_job_waits_in_a_queue(executor, job, tmp_path):
    (tmp_path / "results/gsm8k").mkdir(parents=True)
    (tmp_path / "results/gsm8k/results.json").touch()
    with pytest.raises(UsageError, match="already contains results"):
        executor().submit(job())
    for choice in ({"resume": True}, {"overwrite": True}):
        executor().submit(job(plan=choice))


def test_a_folder_that_another_job_writes_to_is_refused_whatever_the_user_says(executor, job, tmp_path, slurm):
    (tmp_path / "results").mkdir()
    claim = {"job": "slurm:c:77", "pid": 1, "host": "n1", "heartbeat_unix": time.time()}
    (tmp_path / "results/.nemotron-eval.lock").write_text(json.dumps(claim))
    with pytest.raises(UsageError, match="being written by slurm:c:77"):
        executor().submit(job(plan={"overwrite": True}))
    (tmp_path / "results/.nemotron-eval.lock").write_text(json.dumps(claim | {"heartbeat_unix": time.time() - 3600}))
    executor().submit(job(plan={"resume": True}))
