"""``python -m freezeframe``: the command, where its script is not in the path."""

import sys

from freezeframe.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
