"""The files that enroot reads at a container's start: as it writes them itself."""

import subprocess

import pytest

from nemotron.images.sqsh.enroot_files import ImageConfig, enroot_files, environment, fstab, rc

SOURCE = "host/team/name@sha256:0"


def test_the_environment_is_a_line_each():
    config = ImageConfig(env=("PATH=/usr/bin", "QUOTED=a 'b' \"c\" $d", "LINES=one\ntwo", "EMPTY="))
    assert environment(config) == "PATH=/usr/bin\nQUOTED=a 'b' \"c\" $d\nEMPTY=\n"


def test_a_volume_is_a_bind_line():
    config = ImageConfig(volumes=("/data", "/with space"))
    assert fstab(config) == (
        "/data /data none x-create=dir,bind,rw,nofail 0 0\n"
        "/with\\040space /with\\040space none x-create=dir,bind,rw,nofail 0 0\n"
    )


def test_the_start_names_the_source_and_the_labels_as_comments():
    lines = rc(ImageConfig(labels={"b": "2\nrm -rf /", "a": "1"}), SOURCE).splitlines()
    assert lines[:3] == [f"# {SOURCE}", "# a 1", "# b 2 rm -rf /"]
    assert lines[3].startswith("mkdir")


@pytest.mark.parametrize(
    ("entrypoint", "cmd", "arguments", "said"),
    [
        (("echo", "in point"), ("of cmd",), (), "in point of cmd"),
        (("echo", "in point"), ("of cmd",), ("given", "two  words"), "in point given two  words"),
        ((), ("echo", "$HOME `id`"), (), "$HOME `id`"),
        ((), ("false",), ("echo", "given"), "given"),
        ((), (), ("echo", "given"), "given"),
    ],
)
def test_the_start_runs_entry_point_and_command_as_an_engine_does(tmp_path, entrypoint, cmd, arguments, said):
    config = ImageConfig(entrypoint=entrypoint, cmd=cmd, working_dir=str(tmp_path / "a 'b'"))
    done = subprocess.run(["sh", "-s", "--", *arguments], input=rc(config, SOURCE), capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{said}\n", "")
    assert (tmp_path / "a 'b'").is_dir()


def test_an_image_with_neither_starts_a_shell():
    assert "    exec /bin/sh\n" in rc(ImageConfig(), SOURCE)


def test_all_four_are_there_also_of_a_config_of_nulls():
    config = ImageConfig.of({"config": {"Env": None, "Entrypoint": None, "Volumes": None, "Labels": None}})
    assert config == ImageConfig.of({}) == ImageConfig()
    assert [extra.path for extra in enroot_files(config, SOURCE)] == [
        "etc/environment",
        "etc/fstab",
        "etc/rc",
        "etc/rc.local",
    ]


def test_reads_what_builders_write():
    said = {
        "Env": ["A=1"],
        "Entrypoint": ["/run"],
        "Cmd": ["x"],
        "WorkingDir": "/w",
        "Volumes": {"/v": {}},
        "Labels": {"l": "1"},
    }
    assert ImageConfig.of({"config": said}) == ImageConfig(("A=1",), ("/run",), ("x",), "/w", ("/v",), {"l": "1"})
