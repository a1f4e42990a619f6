"""How long does ``import freezeframe`` take, Python's own start included, and does it load Spark?"""

from __future__ import annotations

import subprocess
import sys

from measured import keep, seconds_of, summary

LIMIT_SECONDS = 0.3
RUNS = 15


def main() -> int:
    imported = [run("import freezeframe") for _ in range(RUNS)]
    bare = [run("pass") for _ in range(RUNS)]
    loads_spark = "pyspark" in loaded("import freezeframe")
    result = summary(imported)
    passes = result["median_seconds"] < LIMIT_SECONDS and not loads_spark
    keep(
        "import_time",
        {
            "import": result,
            "python_alone": summary(bare),
            "loads_pyspark": loads_spark,
            "limit_seconds": LIMIT_SECONDS,
            "passes": passes,
        },
    )
    return 0 if passes else 1


def run(code: str) -> float:
    return seconds_of(lambda: subprocess.run([sys.executable, "-c", code], check=True))


def loaded(code: str) -> set[str]:
    text = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


if __name__ == "__main__":
    sys.exit(main())
