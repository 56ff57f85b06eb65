"""The examination of a Slurm profile: every fault by its own line and code, found before any evaluation."""

from pathlib import Path

from tests.launcher.doctor.conftest import TOKEN, bad, line_of, skipped, write_profile


def test_where_all_is_well_every_check_says_so_and_the_token_is_nowhere(examined, cluster_user, slurm, tmp_path):
    """The endpoint wants the token, so the job had it."""
    findings, code = examined()
    assert (bad(findings), skipped(findings), code) == ({}, [], 0)
    checks = list(dict.fromkeys(finding["check"] for finding in findings))
    before = ["suite", "login", "python", "slurm", "partition", "account", "storage", "image"]
    assert checks == [*before, "node", "node storage", "node runtime", "endpoint", "hub", "clock"]
    assert not cluster_user.results.exists() and not list((tmp_path / "jobs").iterdir()), "it leaves nothing"
    seen = [str(call) for call in slurm.calls("sbatch") + slurm.calls("squeue")]
    assert not [text for text in [*seen, str(findings)] if TOKEN in text]


def test_without_remote_job_dir_jobs_have_their_folders_in_the_home_folder(examined, cluster_user):
    del cluster_user.profile["remote_job_dir"]
    findings, code = examined()
    assert (bad(findings), code) == ({}, 0)
    assert (cluster_user.folder / ".nemotron/jobs").is_dir()
    assert not Path("/HOME").exists(), "what -d shows in its place"


def test_findings_are_lines_for_people(cluster_user):
    write_profile(cluster_user, "cluster", cluster_user.profile | {"time": "05:00:00"})
    done = cluster_user("doctor", "-b", "cluster", "-c", "quickstart", "--no-job")
    assert done.returncode == 1
    assert "fail  partition      time 05:00:00 is above the limit of partition cpu, 04:00:00: set time" in done.stdout


def test_every_fault_of_a_profile_is_found_in_one_go_and_names_the_value(examined):
    asks = {"time": "05:00:00", "gpus_per_node": 1, "mem": "300G", "cpus_per_task": 65, "account": "nobody"}
    places = {"mounts": ["/none/data"], "remote_job_dir": "/dev/null/jobs"}
    findings, code = examined("--no-job", profile=asks | places)
    said = {
        "time-limit": "04:00:00",
        "gpus": "partition cpu have none",
        "memory": "256000M",
        "cpus": "the largest node of partition cpu has 64",
        "account-unknown": "eval, guest",
        "mount": "/none/data does not exist",
        "not-writable": "/dev/null cannot be written",
    }
    assert bad(findings) == dict.fromkeys(said, "fail") and code == 1
    assert {name: words in line_of(findings, name) for name, words in said.items()} == dict.fromkeys(said, True)


class TestFromTheNode:
    def test_each_of_several_faults_is_found(self, examined, cluster_user, tmp_path):
        Path(cluster_user.profile["python"]).with_name("nemo-evaluator").unlink()
        offline = {"env_vars": {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")}}
        findings, code = examined(
            "-c", "base_en", profile=offline, EVAL_ENDPOINT_URL="http://127.0.0.1:9/v1/completions"
        )
        faults = {"runtime": "fail", "endpoint-connection": "fail", "hub-cache": "fail"}
        assert bad(findings) == faults and code == 1
        assert "server's own host name" in line_of(findings, "endpoint-connection")
        assert "nemo-evaluator" in line_of(findings, "runtime") and "dataset" in line_of(findings, "hub-cache")

    def test_a_job_that_does_not_begin_is_cancelled(self, examined, slurm, tmp_path):
        slurm.turn(runs=False)
        findings, code = examined("--wait", "1")
        assert bad(findings) == {"waiting": "fail"} and code == 1
        assert skipped(findings) == ["node storage", "node runtime", "endpoint", "hub"]
        assert slurm.jobs()[-1]["state"] == "CANCELLED"
        left = [path.read_text(errors="replace") for path in (tmp_path / "jobs").rglob("*") if path.is_file()]
        assert left and not [text for text in left if TOKEN in text]

    def test_a_job_that_is_refused_tells_why(self, examined, slurm):
        slurm.says(
            "sbatch", stderr="sbatch: error: Batch job submission failed: Invalid wckey\n", code=1, when="--parsable"
        )
        findings, _ = examined()
        assert next(f["what"] for f in findings if f["check"] == "node").count("Invalid wckey") == 1


class TestOneFaultLeavesTheOtherChecksAlone:
    def test_without_a_controller_storage_is_still_looked_at(self, examined, slurm):
        slurm.says("scontrol", stderr="Unable to contact slurm controller (connect failure)\n", code=1)
        findings, code = examined()
        assert bad(findings) == {"controller": "fail"} and code == 1
        assert skipped(findings)[:3] == ["partition", "account", "node"]
        assert any(f["check"] == "storage" and f["severity"] == "ok" for f in findings)

    def test_without_slurm_it_says_where_it_looked(self, examined, slurm):
        slurm.lacks("sbatch")
        assert bad(examined()[0]) == {"sbatch": "fail"}

    def test_without_an_endpoint_the_cluster_is_still_looked_at(self, examined):
        findings, code = examined("--no-job", EVAL_ENDPOINT_URL="")
        assert code == 1 and "set EVAL_ENDPOINT_URL" in findings[0]["what"]
        assert skipped(findings) == ["image"]
        assert any(f["check"] == "storage" and f["severity"] == "ok" for f in findings)

    def test_without_accounting_the_account_is_a_warning(self, examined, slurm):
        slurm.says("sacctmgr", stderr="sacctmgr: error: slurmdbd: Connection refused\n", code=1)
        findings, code = examined("--no-job")
        assert bad(findings) == {"accounting": "warn"} and code == 0


def test_a_profile_that_cannot_be_read_is_exit_code_2(cluster_user):
    write_profile(cluster_user, "cluster", {"executor": "slurm", "partitoin": "x"})
    done = cluster_user("doctor", "-b", "cluster")
    assert done.returncode == 2 and "Did you mean 'partition'?" in done.stderr
