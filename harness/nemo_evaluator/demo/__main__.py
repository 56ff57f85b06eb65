"""Serve the demo model until SIGTERM or Ctrl-C: prints `url:` and `model:` once it answers."""

import os
import signal
import time

import click

from nemo_evaluator.demo.server import MODEL, start_server
from nemo_evaluator.demo.weights import cached_weights
from nemo_evaluator.errors import UsageError


@click.command(help=__doc__)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on loopback; left out or 0: a free one.")
@click.option("--parallel", type=click.IntRange(1, 64), default=4, show_default=True, help="Requests answered at once.")
def main(port: int, parallel: int) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server = start_server(cached_weights(os.environ), port, parallel)
        click.echo(f"url: {server.listening_address}/v1\nmodel: {MODEL}")
        while True:
            time.sleep(1)
    except UsageError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        os._exit(0)  # an orderly exit runs llama.cpp's destructor, which waits for every request in flight


if __name__ == "__main__":
    main(prog_name="python -m nemo_evaluator.demo")
