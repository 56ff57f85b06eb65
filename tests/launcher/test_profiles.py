"""env.toml: where it is, what it may say, and how a mistake in it is told."""

from pathlib import Path

import pytest

from nemotron.env_file import find_profile
from nemotron.errors import ProfileError
from nemotron.job import Mount, Resources
from nemotron.profiles import DockerProfile, LeptonProfile, LocalProfile, SlurmProfile, parse_profile


@pytest.fixture
def env_toml(tmp_path):
    def write(text: str, name: str = "env.toml") -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path

    return write


def find(name: str, folder: Path, **environ: str):
    return find_profile(name, environ, folder).with_settings({})


def refusal(name: str, folder: Path, **environ: str) -> str:
    with pytest.raises(ProfileError) as refused:
        find(name, folder, **environ)
    assert "\n" not in str(refused.value)
    return str(refused.value)


class TestFinding:
    def test_it_lies_here_or_above(self, env_toml):
        folder = env_toml('[here]\nexecutor = "local"\n')
        below = folder / "a" / "b"
        below.mkdir(parents=True)
        assert isinstance(find("here", below), LocalProfile)

    def test_a_variable_names_another(self, env_toml):
        folder = env_toml('[named]\nexecutor = "docker"\n', "other.toml")
        found = find("named", Path("/"), NEMOTRON_ENV_FILE=str(folder / "other.toml"))
        assert isinstance(found, DockerProfile)

    def test_a_variable_that_names_nothing_is_an_error(self, env_toml):
        env_toml('[here]\nexecutor = "local"\n')
        assert "/none.toml" in refusal("here", env_toml(""), NEMOTRON_ENV_FILE="/none.toml")

    def test_none_anywhere_says_how_to_make_one(self, tmp_path):
        assert "env/env_toml" in refusal("any", tmp_path)

    def test_an_unknown_profile_is_told_the_nearest_and_all(self, env_toml):
        folder = env_toml('[slurm_eval_direct]\nexecutor = "slurm"\n[wandb]\nproject = "x"\n')
        message = refusal("slrum_eval_direct", folder)
        assert "Did you mean 'slurm_eval_direct'?" in message and "wandb" not in message

    def test_what_is_no_toml_is_one_line_with_its_place(self, env_toml):
        assert "line 1" in refusal("a", env_toml("[a\n"))


class TestExtending:
    def test_a_profile_has_what_it_extends_and_its_own_over_that(self, env_toml):
        folder = env_toml(
            '[base]\nexecutor = "slurm"\naccount = "a"\npartition = "p"\nenv_vars.A = "1"\nenv_vars.B = "1"\n'
            '[mine]\nextends = "base"\npartition = "q"\nenv_vars.B = "2"\n'
        )
        found = find("mine", folder)
        assert isinstance(found, SlurmProfile)
        assert (found.account, found.partition, found.env_vars) == ("a", "q", {"A": "1", "B": "2"})

    def test_a_base_that_is_not_there_is_told_the_nearest(self, env_toml):
        assert "'base'" in refusal("mine", env_toml('[base]\n[mine]\nextends = "bse"\n'))

    def test_going_round_in_circles_is_refused(self, env_toml):
        assert "a extends b extends a" in refusal("a", env_toml('[a]\nextends = "b"\n[b]\nextends = "a"\n'))


class TestKeys:
    def test_an_unknown_key_is_told_its_name(self):
        with pytest.raises(ProfileError, match=r"unknown key 'partiton'\. Did you mean 'partition'\?"):
            parse_profile({"executor": "slurm", "partiton": "cpu"}, "[p]")

    def test_an_unknown_backend_is_told_which_there_are(self):
        with pytest.raises(ProfileError, match=r"'slrum' is not one of local, docker, slurm, lepton, dgxcloud"):
            parse_profile({"executor": "slrum"}, "[p]")

    def test_what_a_backend_cannot_do_without_is_named(self):
        with pytest.raises(ProfileError, match="resource_shape"):
            parse_profile({"executor": "lepton"}, "[p]")

    def test_a_value_of_another_kind_is_named(self):
        with pytest.raises(ProfileError, match="gpus_per_node"):
            parse_profile({"executor": "slurm", "gpus_per_node": "none"}, "[p]")

    @pytest.mark.parametrize(
        ("time", "seconds"), [(30, 1800), ("30", 1800), ("45:30", 2730), ("04:00:00", 14400), ("1-12", 129600)]
    )
    def test_times_are_slurms(self, time, seconds):
        assert parse_profile({"executor": "slurm", "time": time}, "[p]").resources.time_limit_seconds == seconds

    @pytest.mark.parametrize(("memory", "mib"), [(8192, 8192), ("8G", 8192), ("512MiB", 512), ("8 gb", 8192)])
    def test_sizes_are_mebibytes_or_say_what_they_are(self, memory, mib):
        assert parse_profile({"executor": "docker", "memory": memory}, "[p]").resources == Resources(memory_mib=mib)

    @pytest.mark.parametrize(
        ("text", "mount"),
        [("/a", Mount("/a", "/a")), ("/a:/b", Mount("/a", "/b")), ("/a:/b:ro", Mount("/a", "/b", True))],
    )
    def test_mounts_are_written_as_for_every_engine(self, text, mount):
        assert parse_profile({"executor": "docker", "mounts": [text]}, "[p]").job_mounts == (mount,)

    @pytest.mark.parametrize(
        ("key", "value", "accepted"),
        [
            ("mem", "lots", "such as 32G"),
            ("time", "4 hours", "HH:MM:SS"),
            ("cpus_per_task", 0, "greater than 0"),
            ("remote_job_dir", "jobs", "begin it with /"),
            ("container_runtime", "singularity", "'apptainer'"),
        ],
    )
    def test_a_wrong_value_is_repeated_with_what_is_accepted(self, key, value, accepted):
        with pytest.raises(ProfileError) as refused:
            parse_profile({"executor": "slurm", key: value}, "[p]")
        assert f"[p]: {key} {value!r}: " in str(refused.value) and accepted in str(refused.value)

    def test_a_token_in_the_place_of_its_name_is_not_repeated(self):
        with pytest.raises(ProfileError) as refused:
            parse_profile({"executor": "slurm", "secret_vars": ["sk-not-a-real-key"]}, "[p]")
        assert "secret_vars.0" in str(refused.value) and "sk-not" not in str(refused.value)

    @pytest.mark.parametrize("text", ["data:/b", "/a:/b:rx", "/a:b"])
    def test_a_mount_that_is_none_is_repeated(self, text):
        with pytest.raises(ProfileError, match=repr(text)):
            parse_profile({"executor": "docker", "mounts": [text]}, "[p]")

    def test_a_cpu_job_on_lepton_does_not_ask_for_the_shared_memory_of_a_gpu(self):
        found = parse_profile({"executor": "lepton", "resource_shape": "cpu.large"}, "[p]")
        assert isinstance(found, LeptonProfile) and found.resources.shared_memory_mib == 8192

    @pytest.mark.parametrize(("host", "is_here"), [(None, True), ("localhost", True), ("login.example", False)])
    def test_without_a_host_this_machine_is_the_login_node(self, host, is_here):
        found = parse_profile({"executor": "slurm", "host": host}, "[p]")
        assert isinstance(found, SlurmProfile) and found.is_here is is_here


class TestVariables:
    def test_they_refer_to_the_shell(self, env_toml):
        folder = env_toml('[p]\nexecutor = "local"\nenv_vars.A = "${oc.env:A,\'\'}"\nenv_vars.B = "${oc.env:B,\'\'}"\n')
        assert find_profile("p", {"A": "1"}, folder).env_vars == {"A": "1"}

    def test_one_that_must_be_set_is_named(self, env_toml):
        folder = env_toml('[p]\nexecutor = "local"\nenv_vars.A = "${oc.env:NOT_SET}"\n')
        with pytest.raises(Exception, match="NOT_SET"):
            find("p", folder)

    @pytest.mark.parametrize("value", ["HF_TOKEN", "MY_TOKEN"])
    def test_the_name_of_a_secret_is_not_taken_for_its_value(self, env_toml, value):
        message = refusal("p", env_toml(f'[p]\nexecutor = "local"\nenv_vars.HF_TOKEN = "{value}"\n'))
        assert f"${{oc.env:{value}}}" in message

    def test_a_name_no_shell_could_export_is_refused(self, env_toml):
        assert "BASH_FUNC" in refusal("p", env_toml('[p]\nexecutor = "local"\nenv_vars."BASH_FUNC_x%%" = "y"\n'))

    def test_the_image_is_not_for_a_profile_to_select(self, env_toml):
        folder = env_toml('[p]\nexecutor = "docker"\nenv_vars.EVAL_HARNESS_IMAGE = "r.example/i:1"\n')
        assert "export EVAL_HARNESS_IMAGE in the shell" in refusal("p", folder)

    def test_a_placeholder_is_not_taken_for_a_value(self, env_toml):
        assert "account" in refusal("p", env_toml('[p]\nexecutor = "slurm"\naccount = "<account>"\n'))


EXAMPLE = Path(__file__).parents[2] / "env.toml.example"


@pytest.mark.parametrize("name", ["local", "docker", "slurm", "lepton", "dgxcloud"])
def test_every_profile_of_the_example_validates(name):
    assert find(name, Path("/"), NEMOTRON_ENV_FILE=str(EXAMPLE)).executor == name
