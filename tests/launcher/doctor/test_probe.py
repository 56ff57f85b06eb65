"""The program that looks around on login and compute nodes; it also runs on Python 3.6."""

import ast
import asyncio
import json
import ssl
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import trustme

from nemotron.doctor import probe
from nemotron.doctor.facts import PROGRAM, Facts, NoAnswer, parse_facts
from tests.fakes.openai_server import Behaviour, FakeServer, When

MODEL = {"endpoint_url": None, "endpoint_url_variable": None, "api_key_name": None}


def facts(**questions) -> Facts:
    return Facts.of(probe.answers(questions))


@contextmanager
def redirecting():
    """A server that sends everybody on, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def reached(url: str, **model):
    asked = MODEL | {"endpoint_url": url} | model
    return (await asyncio.to_thread(facts, endpoint=asked)).endpoint


def test_it_needs_nothing_but_an_old_python():
    tree = ast.parse(PROGRAM, feature_version=(3, 6))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {module.split(".")[0] for module in modules} <= sys.stdlib_module_names


def test_it_answers_on_standard_output_whatever_is_printed_around_it():
    command = [sys.executable, "-I", "-", json.dumps({"commands": ["sh", "no-such-command"]})]
    done = subprocess.run(command, input=PROGRAM, capture_output=True, check=True)
    found = parse_facts(["Welcome!", *done.stdout.decode().splitlines(), "bye"])
    assert found.commands["sh"] and not found.commands["no-such-command"]
    with pytest.raises(NoAnswer):
        parse_facts(["Welcome!"])


def test_what_cannot_be_read_is_told_why(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    paths = [str(tmp_path), str(tmp_path / "link"), "/none"]
    assert list(facts(sources=paths).sources.values()) == ["", "is a link to nothing", "does not exist"]


def test_folders_are_written_to_for_real_and_left_as_they_were(tmp_path):
    (tmp_path / "file").touch()
    wanted = [str(tmp_path / "new/deep"), str(tmp_path / "file/below"), "~"]
    found = facts(folders=wanted).folders
    new, below, home = (found[path] for path in wanted)
    assert (new.flaw, new.exists, new.there) == ("", False, str(tmp_path)) and new.free_bytes > 0
    assert below.flaw == "Not a directory" and home.exists
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


class TestEndpoint:
    async def test_its_models_are_listed_with_the_token_of_the_environment(self, monkeypatch):
        monkeypatch.setenv("TOKEN_OF_A", "sk-not-a-real-key-a")
        async with FakeServer(api_key="sk-not-a-real-key-a", model="m") as server:
            url = f"{server.url}/chat/completions"
            assert (await reached(url, api_key_name="TOKEN_OF_A")).models == ("m",)
            assert (await reached(url)).status == 401

    async def test_its_url_may_be_a_secret(self, monkeypatch):
        async with FakeServer() as server:
            monkeypatch.setenv("EVAL_ENDPOINT_URL", f"{server.url}/completions")
            assert (await reached("", endpoint_url_variable="EVAL_ENDPOINT_URL")).status == 200

    async def test_what_it_says_is_shown_without_the_token(self, monkeypatch):
        monkeypatch.setenv("TOKEN_OF_A", "sk-not-a-real-key-a")
        said = Behaviour(when=When(path="/models"), status=403, body="no sk-not-a-real-key-a here")
        async with FakeServer(said) as server:
            answer = await reached(f"{server.url}/completions", api_key_name="TOKEN_OF_A")
        assert (answer.status, answer.said) == (403, "no *** here")

    async def test_a_redirect_is_an_answer_and_takes_the_token_nowhere(self, monkeypatch):
        monkeypatch.setenv("TOKEN_OF_A", "sk-not-a-real-key-a")
        with redirecting() as (url, asked):
            answer = await reached(f"{url}/v1/completions", api_key_name="TOKEN_OF_A")
        assert answer.status == 302 and asked == ["/v1/models"]

    async def test_a_certificate_that_nobody_vouches_for_is_named(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("localhost").configure_cert(context)
        async with FakeServer(ssl=context) as server:
            url = server.url.replace("127.0.0.1", "localhost").replace("http:", "https:")
            answer = await reached(f"{url}/completions")
        assert answer.stage == "tls" and "unable to get local issuer certificate" in answer.said

    @pytest.mark.parametrize(
        ("url", "stage"),
        [("http://no-such-host.invalid/v1/completions", "name"), ("http://127.0.0.1:9/v1", "connection")],
    )
    async def test_each_step_has_a_name(self, url, stage):
        assert (await reached(url)).stage == stage


def test_what_is_in_the_cache_of_the_hub_is_known(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    (tmp_path / "hub/models--org--name/snapshots").mkdir(parents=True)
    found = facts(hub_items=["models--org--name", "datasets--org--name"]).cached
    assert found == {"models--org--name": True, "datasets--org--name": False}
