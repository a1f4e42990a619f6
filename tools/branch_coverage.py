"""Print the branch coverage of the quick tests by package, and which functions that write are covered least.

It is a look, no gate: lines that only processes of their own run (workers, Spark's tasks, killed writers)
count as not covered here, though the long tests run them. Options are pytest's.
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "freezeframe"
DATA, REPORT = ROOT / ".cache" / "coverage", ROOT / ".cache" / "coverage.json"
QUICK = "not spark and not browser and not stateful and not nightly and not long"
FUNCTIONS = 20
STATEMENTS_MIN = 4
WRITES = frozenset(
    {
        *("write", "writelines", "write_bytes", "write_text", "write_durably", "put_if_absent"),
        *("delete", "unlink", "remove", "rmtree", "rmdir", "rename", "mkdir", "prune", "remove_tree"),
        *("execute", "insert_if_absent", "commit", "land_file", "submit", "copyfileobj", "copytree"),
        "write_table",
    }
)
"""Names of the calls by which a function is one that writes."""


def writers(file: Path) -> dict[str, int]:
    """Return the functions of a file that write, by qualified name, with their first line."""
    found = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                calls = (part.func for part in ast.walk(child) if isinstance(part, ast.Call))
                names = {getattr(call, "attr", getattr(call, "id", "")) for call in calls}
                if names & WRITES:
                    found[f"{prefix}{child.name}"] = child.lineno
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                visit(child, f"{prefix}{child.name}.")

    visit(ast.parse(file.read_text(encoding="utf-8")), "")
    return found


def share(summary: dict[str, int]) -> float:
    """Return how many of a hundred statements and branches were run."""
    done = summary["covered_lines"] + summary["covered_branches"]
    return 100 * done / max(summary["num_statements"] + summary["num_branches"], 1)


def by_package(files: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return the sums of each package below ``freezeframe``."""
    sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for name, file in files.items():
        parts = Path(name).relative_to(SOURCE.relative_to(ROOT)).parts
        for package in (parts[0] if len(parts) > 1 else "(its own modules)", "all"):
            for what in ("num_statements", "covered_lines", "num_branches", "covered_branches"):
                sums[package][what] += file["summary"][what]
    return sums


def least_covered_writers(files: dict[str, Any]) -> list[tuple[float, str]]:
    """Return the functions that write, those first that are covered least, as ``file:line name``."""
    found = []
    for name, file in files.items():
        lines = writers(ROOT / name)
        for function, region in file["functions"].items():
            if function in lines and region["summary"]["num_statements"] >= STATEMENTS_MIN:
                missing = ",".join(map(str, region["missing_lines"]))
                where = f"{name}:{lines[function]} {function} (not run: {missing or 'branches'})"
                found.append((share(region["summary"]), where))
    return sorted(found)


def run(*arguments: str) -> int:
    """Run coverage.py with these arguments, and return its exit code."""
    return subprocess.run([sys.executable, "-m", "coverage", *arguments], cwd=ROOT, check=False).returncode  # noqa: S603


def main(options: list[str]) -> int:
    """Run the quick tests and print the tables; the exit code is that of the tests."""
    data = f"--data-file={DATA}"
    status = run("run", "--branch", f"--source={SOURCE}", data, "-m", "pytest", "-q", "-m", QUICK, *options)
    if run("json", data, "-q", "-o", str(REPORT)) != 0:
        return status or 1
    files = json.loads(REPORT.read_text(encoding="utf-8"))["files"]
    table = [f"{'package':20} statements branches covered %"]
    for package, sums in sorted(by_package(files).items()):
        numbers = f"{sums['num_statements']:10,} {sums['num_branches']:8,} {share(sums):9.1f}"
        table.append(f"{package:20} {numbers}")
    least = [f"{covered:5.1f} {where}" for covered, where in least_covered_writers(files)[:FUNCTIONS]]
    sys.stdout.write("\n".join(["", *table, "", "Functions that write, covered least:", *least, ""]))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
