"""A fake tap that writes invented data: ``python -m freezeframe.testing.tap FOLDER``.

Taps are programs that leave their output in a folder; whoever runs a whole sync, as the demo
does, runs this one where a real one would be.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from freezeframe.testing.sync_output import SyncSize, write_sync_output

_USUAL = SyncSize()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write one sync into a folder; see ``write_sync_output``."""
    parser = argparse.ArgumentParser(
        prog="freezeframe.testing.tap", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="where the CSV files go")
    parser.add_argument("--sync", type=int, choices=(1, 2), default=1, help="1: full, 2: incremental")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other data")
    parser.add_argument("--leads", type=int, default=_USUAL.leads)
    parser.add_argument("--invoices", type=int, default=_USUAL.invoices)
    parser.add_argument("--ledger-lines", type=int, default=_USUAL.ledger_lines)
    given = parser.parse_args(arguments)
    size = SyncSize(given.leads, given.invoices, given.ledger_lines)
    write_sync_output(given.folder, given.sync, given.seed, size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
