"""The shape of the code: what may import what, how large a piece may be, what loads when."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "freezeframe"
MODULES = sorted(SOURCE.rglob("*.py"))
MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 7
METHODS_MAX = 15
DOCUMENTED_VERBS = {
    *("get_snapshot", "update_snapshot", "snapshot_records", "read"),
    *("read_csv_folder", "read_json_folder", "import_stream"),
}
"""Their parameters are options that a script writes by name."""
CONSOLE = SOURCE.parent.parent / "ui" / "src"
CONSOLE_LAYERS = [
    *("shell", "tenants", "overview", "schedules", "keys", "proof", "audit", "comparison"),
    *("snapshots", "streams", "history", "files", "jobs", "uploads", "events"),
    *("navigation", "session", "parts", "api"),
]
"""The folders of the console, the highest first."""
DIVIDED = ("store", "log", "engine", "script", "runs", "control", "service", "asgi", "cli")
OPTIONS_OF = ("asgi/routes/", "cli/")
"""Where a function is a route or a command, and its parameters are that one's options."""
BANNED_NAMES = {"utils", "util", "common", "helpers", "misc"}


def _ids(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_import_contracts_are_kept():
    """Packages depend downwards only, without cycles, as import-linter is told in pyproject.toml."""
    linter = Path(sys.executable).parent / "lint-imports"
    run = subprocess.run(
        [linter, "--no-cache"], cwd=SOURCE.parent.parent, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    "packages",
    ["freezeframe", "freezeframe.log, freezeframe.storage, freezeframe.store", "freezeframe.script"],
)
def test_nothing_loads_spark_before_it_is_needed(packages):
    """Importing the library, its log and its store never loads PySpark."""
    code = f"import sys, {packages}; print('pyspark' in sys.modules, 'py4j' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "False False"


def test_importing_the_package_loads_no_frames():
    """`import freezeframe` alone is quick: neither pandas nor Arrow is loaded."""
    code = (
        "import sys, freezeframe; print([n for n in ('pandas', 'pyarrow', 'pydantic') if n in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"


def test_opening_a_log_loads_no_pandas(tmp_path):
    """Its import takes most of a second and some forty megabytes: more than a log of many files."""
    made = "import pyarrow as pa, deltalake; rows = pa.table({'id': [1]}); "
    made += "[deltalake.write_deltalake('t', rows, mode='append') for _ in range(11)]"
    subprocess.run([sys.executable, "-c", made], cwd=tmp_path, check=True)
    code = "import sys; from freezeframe.log import DeltaLog; snapshot = DeltaLog.open('t').snapshot; "
    code += "print(snapshot.count, snapshot.files.num_rows, 'pandas' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert run.stdout.strip() == "11 11 False"


@pytest.mark.parametrize("path", MODULES, ids=_ids)
def test_modules_and_functions_stay_small(path):
    """A module has at most 600 lines, a function at most 70."""
    text = path.read_text()
    functions = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    long = [f.name for f in functions if f.end_lineno - f.lineno + 1 > FUNCTION_LINES_MAX]

    assert MODULE_LINES_MAX >= len(text.splitlines())
    assert long == []


def test_functions_take_few_parameters_and_classes_have_few_methods():
    """At most seven parameters besides ``self``, unless they are options; at most fifteen public methods."""
    broad = []
    for path in MODULES:
        name = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                count = len([item for item in node.body if _is_public_method(item)])
                broad += [f"{name}: {node.name}, {count} methods"] if count > METHODS_MAX else []
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = len([item for item in given if item.arg not in ("self", "cls")])
                is_options = name.startswith(OPTIONS_OF) or node.name in DOCUMENTED_VERBS
                if count > PARAMETERS_MAX and not is_options:
                    broad.append(f"{name}: {node.name}, {count} parameters")

    assert broad == []


def _is_public_method(node):
    is_method = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    decorators = {getattr(item, "id", "") for item in getattr(node, "decorator_list", ())}
    return is_method and decorators.isdisjoint({"property", "cached_property"})


@pytest.mark.parametrize("path", MODULES, ids=_ids)
def test_modules_are_named_for_one_concept(path):
    """No module is a grab-bag."""
    assert path.stem not in BANNED_NAMES


@pytest.mark.parametrize("path", [m for m in MODULES if m.name == "__init__.py"], ids=_ids)
def test_package_files_only_re_export(path):
    """An `__init__` defines nothing but its public names (two find them when asked)."""
    tree = ast.parse(path.read_text())
    allowed = {"__getattr__", "__dir__"} if path.parent in {SOURCE, SOURCE / "script"} else set()
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name not in allowed
    }

    assert defined == set()


def test_the_engine_uses_only_what_spark_connect_offers():
    """Nothing reaches through to the JVM or to a Spark context."""
    for path in MODULES:
        attributes = {n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)}

        assert attributes & {"_jvm", "_jsc", "_jdf", "sparkContext", "_sc", "rdd"} == set(), path


def test_the_map_of_the_code_names_what_is_there():
    """Each path there and in the glossary is a module, each folder of a package is on the map."""
    page = (SOURCE.parent.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    glossary = (SOURCE.parent.parent / "docs" / "glossary.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+)(?:\.[a-z_]+)?`", page + glossary)
    places = [root / path for path in named for root in (SOURCE, SOURCE.parent.parent)]
    there = {place for place in places if place.is_dir() or place.with_suffix(".py").is_file()}
    missing = [path for path in named if there.isdisjoint((SOURCE / path, SOURCE.parent.parent / path))]
    folders = {
        f"{package.name}/{folder.name}"
        for package in map(
            SOURCE.joinpath, ("store", "log", "engine", "script", "runs", "control", "service", "asgi", "cli")
        )
        for folder in package.iterdir()
        if (folder / "__init__.py").is_file() and f"`{folder.name}`" not in page
    }

    assert (missing, folders) == ([], set())


def test_the_consoles_folders_import_downwards_only():
    """What a folder imports is in one that comes after it, and each folder has its place."""
    layers = {name: place for place, name in enumerate(CONSOLE_LAYERS)}
    imports = [
        (path.relative_to(CONSOLE).as_posix(), other)
        for path in sorted(CONSOLE.glob("*/*.ts*"))
        for other in re.findall(
            r"""(?:from |import |import\()"(?:@|\.\.)/([a-z]+)""", path.read_text(encoding="utf-8")
        )
    ]
    upward = [(path, other) for path, other in imports if layers[path.split("/")[0]] > layers[other]]

    assert (layers.keys(), []) == ({path.name for path in CONSOLE.iterdir() if path.is_dir()}, upward)
    assert len(imports) > 300
