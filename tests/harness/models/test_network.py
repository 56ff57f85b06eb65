"""EC-28, and the file limit of EC-18: what stands between this process and the endpoint."""

import ssl
import subprocess
import sys

import pytest
import trustme

from nemo_evaluator.errors import RequestError, UsageError
from nemo_evaluator.models.network import proxy_for
from tests.fakes.openai_server import FakeServer

DEAD_PROXY = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def bundle(authority, tmp_path):
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


@pytest.fixture
def tls(authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


async def test_a_private_authority_is_trusted_when_it_is_named(client_of, tls, bundle):
    async with FakeServer(ssl=tls) as server, client_of(server, ca_bundle=bundle) as client:
        assert (await client.chat("hi")).content == "The answer is 42."


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
async def test_a_private_authority_is_trusted_from_the_environment(client_of, tls, bundle, variable):
    async with FakeServer(ssl=tls) as server, client_of(server, environ={variable: bundle}) as client:
        assert (await client.chat("hi")).content == "The answer is 42."


async def test_an_unknown_authority_is_refused_at_once_with_the_next_step(client_of, tls):
    async with FakeServer(ssl=tls) as server, client_of(server) as client:
        with pytest.raises(RequestError) as caught:
            await client.chat("hi")
        assert client.stats()["requests"] == 1
    assert caught.value.kind == "connection"
    assert "ca_bundle" in str(caught.value)


async def test_a_bundle_that_cannot_be_read_is_named(client_of, tmp_path):
    missing = str(tmp_path / "missing.pem")
    async with client_of("https://127.0.0.1:1", ca_bundle=missing) as client:
        with pytest.raises(UsageError, match=r"missing\.pem"):
            await client.chat("hi")


async def test_loopback_is_never_proxied(client_of):
    async with FakeServer() as server, client_of(server, environ=DEAD_PROXY) as client:
        assert (await client.chat("hi")).content == "The answer is 42."


async def test_another_host_is_asked_through_the_proxy(client_of):
    async with (
        FakeServer() as proxy,
        client_of("http://model.invalid/v1", environ={"http_proxy": proxy.root}) as client,
    ):
        with pytest.raises(RequestError):
            await client.chat("hi")
    assert proxy.log[0].path == "http://model.invalid/v1/chat/completions"


@pytest.mark.parametrize(
    ("url", "no_proxy", "is_proxied"),
    [
        ("http://model.corp/v1", "", True),
        ("http://model.corp/v1", "corp", False),
        ("http://model.corp/v1", ".corp", False),
        ("http://model.corp/v1", "*.corp", False),
        ("http://model.corp/v1", "el.corp", True),
        ("http://model.corp:80/v1", "model.corp:80", False),
        ("http://model.corp:80/v1", "model.corp:81", True),
        ("http://10.1.2.3/v1", "10.0.0.0/8", False),
        ("http://10.1.2.3/v1", "192.168.0.0/16, *", False),
        ("http://127.5.5.5/v1", "", False),
        ("http://[::1]:80/v1", "", False),
        ("http://localhost/v1", "", False),
    ],
)
def test_no_proxy_is_understood(url, no_proxy, is_proxied):
    environ = {"http_proxy": "proxy:3128", "no_proxy": no_proxy}
    assert proxy_for(url, environ) == ("http://proxy:3128" if is_proxied else None)


def test_ec18_few_open_files_bound_the_pool_with_one_warning():
    result = run_under_limit("ulimit -n 128")
    assert "ok 300" in result.stdout, result.stderr
    assert result.stderr.count("open files") == 1


def test_ec18_a_low_soft_limit_is_raised():
    result = run_under_limit("ulimit -Sn 128")
    assert "ok 300" in result.stdout, result.stderr
    assert "open files" not in result.stderr


def run_under_limit(limit):
    """300 requests at once against a server in a process of its own, which has its files for itself."""
    command = [sys.executable, "-m", "tests.fakes.openai_server", "--settings", '{"behaviours": [{"delay": 0.05}]}']
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        url = server.stdout.readline().removeprefix("url: ").strip()
        shell = ["sh", "-c", f'{limit} && exec "$@"', "sh", sys.executable, "-c", ASKS, url]
        result = subprocess.run(shell, capture_output=True, text=True, timeout=180)
        server.terminate()
    return result


ASKS = """
import asyncio, sys
from nemo_evaluator.models import ModelClient

async def main():
    async with ModelClient(sys.argv[1], "m", max_concurrent=300, environ={}) as client:
        answers = await asyncio.gather(*(client.chat(str(n)) for n in range(300)))
    print("ok", len(answers))

asyncio.run(main())
"""
