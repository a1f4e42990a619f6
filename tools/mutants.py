"""Print how many changes of each module, made by mutmut, the tests noticed, and the names of the others."""  # noqa: INP001 - a script, no package

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "mutants" / "src"
SURVIVED, WITHOUT_TEST = 0, 33
"""Exit codes of pytest and mutmut for a change that no test noticed, and for one that no test reaches."""


def main() -> int:
    """Print a line for each module of which changes were tried, and one for all of them."""
    tried = noticed = 0
    for file in sorted(ROOT.rglob("*.meta")):
        codes = json.loads(file.read_text())["exit_code_by_key"].items()
        left = [name for name, code in codes if code in (SURVIVED, WITHOUT_TEST)]
        count = sum(code is not None for _, code in codes)
        if count:
            share = f"{count - len(left):6,} of {count:6,}"
            sys.stdout.write("\n  ".join([f"{share} {file.relative_to(ROOT).with_suffix('')}", *left]) + "\n")
        tried, noticed = tried + count, noticed + count - len(left)
    sys.stdout.write(f"{noticed:6,} of {tried:6,} changes were noticed: {noticed / max(tried, 1):.1%}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
