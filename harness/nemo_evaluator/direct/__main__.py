"""The same file starts the package and, copied to the root of the archive, the zip application."""

import sys

from nemo_evaluator.direct.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
