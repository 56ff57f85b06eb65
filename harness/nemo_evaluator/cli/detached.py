"""The other end of `--background`: the command line comes on stdin."""

import json
import sys

from nemo_evaluator.cli.main import main

if __name__ == "__main__":
    main(json.load(sys.stdin))
