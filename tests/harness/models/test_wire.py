"""What a session would have done for us, and the wire must do itself."""

import asyncio
import gzip
from contextlib import suppress

import pytest

from nemo_evaluator.errors import RequestError, UsageError
from nemo_evaluator.models import ModelClient, RetryPolicy
from tests.fakes.openai_server import FakeServer

BODY = b'{"choices": [{"message": {"content": "four"}, "finish_reason": "stop"}]}'


class RawServer:
    """Answers every request with the same bytes and keeps what it was sent."""

    def __init__(self, *pieces: bytes, closes: bool = False) -> None:
        self.pieces, self.closes = pieces, closes
        self.requests: list[bytes] = []
        self.connections = 0

    async def __aenter__(self) -> "RawServer":
        self.tasks: list[asyncio.Task[None]] = []
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        await asyncio.wait_for(asyncio.gather(*self.tasks), 180)
        await self.server.wait_closed()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.tasks.append(asyncio.create_task(self.serve(reader, writer)))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
                self.requests.append(head + await reader.readexactly(length))
                for piece in self.pieces:
                    writer.write(piece)
                    await asyncio.sleep(0.01)
                if self.closes:
                    break
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def head(body: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers, b"", b""])


async def ask(server: RawServer, times: int = 1) -> list[str]:
    async with ModelClient(server.url, "m", "", timeout=5, retry=RetryPolicy.bounded(0)) as client:
        return [(await client.chat("2+2?")).content for _ in range(times)]


async def test_a_reply_in_chunks_is_put_together():
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (BODY[:20], BODY[20:])) + b"0\r\n\r\n"
    async with RawServer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunks) as server:
        assert await ask(server, 2) == ["four", "four"]
    assert server.connections == 1


async def test_a_compressed_reply_is_unpacked():
    packed = gzip.compress(BODY)
    async with RawServer(head(packed, b"Content-Encoding: gzip") + packed) as server:
        assert await ask(server) == ["four"]


async def test_a_reply_without_a_length_ends_with_the_connection():
    async with RawServer(b"HTTP/1.1 200 OK\r\n\r\n" + BODY, closes=True) as server:
        assert await ask(server, 2) == ["four", "four"]
    assert server.connections == 2


async def test_a_connection_that_is_announced_to_close_is_not_used_again():
    async with RawServer(head(BODY, b"Connection: close") + BODY) as server:
        assert await ask(server, 2) == ["four", "four"]
    assert server.connections == 2


async def test_an_informational_reply_comes_before_the_real_one():
    async with RawServer(b"HTTP/1.1 102 Processing\r\n\r\n", head(BODY) + BODY) as server:
        assert await ask(server, 2) == ["four", "four"]


async def test_a_reply_that_is_not_http_is_a_bad_reply():
    async with RawServer(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", closes=True) as server:
        with pytest.raises(RequestError) as failed:
            await ask(server)
    assert failed.value.kind == "bad_reply" and "not HTTP" in str(failed.value)


async def test_a_redirect_is_not_followed_with_the_key():
    async with RawServer(
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"
    ) as server:
        with pytest.raises(RequestError) as failed:
            await ask(server)
    assert "307" in str(failed.value)
    assert len([request for request in server.requests if request.startswith(b"POST")]) == 1


async def test_a_request_is_one_whole_http_message():
    async with RawServer(head(BODY) + BODY) as server:
        await ask(server)
    sent, _, body = server.requests[0].partition(b"\r\n\r\n")
    lines = sent.split(b"\r\n")
    assert lines[0] == b"POST /v1/chat/completions HTTP/1.1"
    assert b"Content-Type: application/json" in lines and b"Content-Length: %d" % len(body) in lines
    assert [line for line in lines if line.lower().startswith(b"host: ")] == [b"Host: " + server.url[7:-3].encode()]


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b"])
async def test_a_header_with_a_line_break_is_refused(value):
    async with FakeServer() as server, ModelClient(server.url, "m", "", extra_headers={"X-Team": value}) as client:
        with pytest.raises(UsageError, match="X-Team"):
            await client.chat("hi")
    assert server.count == 0


async def test_a_cancelled_request_gives_its_connection_up():
    async with RawServer(head(BODY)) as server, ModelClient(server.url, "m", "", timeout=5) as client:
        waiting = asyncio.create_task(client.chat("2+2?"))
        while not server.requests:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        server.pieces = (head(BODY) + BODY,)
        assert (await client.chat("2+2?")).content == "four"
    assert server.connections == 2
