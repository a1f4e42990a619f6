"""The shape of the code: what may import what, how large a piece may be, what loads when."""

import ast
import re
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

import freezeframe.gluestick
import freezeframe.script

SOURCE = Path(__file__).parent.parent / "src" / "freezeframe"
MODULES = sorted(SOURCE.rglob("*.py"))
OPTIONS_OF = ("asgi/routes/", "cli/", "service/operations/")
PUBLIC = {"read", *freezeframe.__all__, *freezeframe.script.__all__, *freezeframe.gluestick.__all__}
PARAMETERS_MAX, METHODS_MAX = 7, 25
CLASSIC = ("_jvm", "_jsc", "_jdf", "_sc", "sparkContext")

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)

# The size of the whole, so that a change that makes it larger says so here. The numbers follow it down.
# Spark's format and the targets of jobs made it larger; the rules written once make it smaller.
SOURCE_LINES_MAX, TEST_LINES_MAX = 84_300, 79_950
MODULES_MAX, MEDIAN_LINES_MIN, IMPORT_LINES_MAX = 363, 150, 5_585

# How many of our own calls a reader follows below nine of ten public functions, and how many functions in a
# hundred are private ones that are used once. The aims are 5 and 12; the numbers follow the code down.
DEPTH_MAX, USED_ONCE_PERCENT_MAX = 7, 18

CONSOLE = SOURCE.parent.parent / "ui" / "src"
CONSOLE_LAYERS = [
    *("shell", "tenants", "overview", "schedules", "keys", "audit", "comparison"),
    *("jobs", "snapshots", "streams", "history", "files", "uploads", "events"),
    *("navigation", "session", "parts", "api"),
]
"""The folders of the console, the highest first."""


def test_import_contracts_are_kept():
    """Packages depend downwards only, without cycles, as import-linter is told in pyproject.toml."""
    linter = Path(sys.executable).parent / "lint-imports"
    run = subprocess.run(
        [linter, "--no-cache"], cwd=SOURCE.parent.parent, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stdout + run.stderr


LOADS = """
import sys
from collections import Counter
import freezeframe
def loaded(*names):
    print([name for name in names if name in sys.modules])
loaded("pandas", "pyarrow", "pydantic")
from freezeframe.log import DeltaLog
snapshot = DeltaLog.open("t").snapshot
print(snapshot.count, snapshot.files.num_rows)
loaded("pandas")
import freezeframe.storage, freezeframe.store, freezeframe.script, freezeframe.asgi.application
loaded("pyspark", "py4j")
"""


def test_libraries_are_loaded_when_they_are_needed(tmp_path):
    """No Arrow for the package alone, no pandas for a log of several files, PySpark for none of our own."""
    for number in range(11):
        write_deltalake(tmp_path / "t", pa.table({"id": [number]}), mode="append")
    run = subprocess.run(
        [sys.executable, "-c", LOADS], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert run.stdout.splitlines() == ["[]", "11 11", "[]", "[]"]


def test_functions_and_classes_have_few_parameters_and_methods():
    """A package file defines nothing, and nothing reaches past Spark Connect to the JVM."""
    wrong = [f"{path.relative_to(SOURCE)}: {fault}" for path in MODULES for fault in _faults(path)]

    assert wrong == []


def _faults(path):
    nodes = list(ast.walk(ast.parse(path.read_text())))
    for node in nodes:
        if isinstance(node, FUNCTION):
            named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = len([item for item in named if item.arg not in ("self", "cls")])
            if count > PARAMETERS_MAX and not _takes_options(path, node):
                yield f"{node.name} has {count} parameters"
        elif isinstance(node, ast.ClassDef):
            count = len([item for item in node.body if _is_public_method(item)])
            if count > METHODS_MAX:
                yield f"{node.name} has {count} public methods"
        elif isinstance(node, ast.Attribute) and node.attr in CLASSIC:
            yield f"uses {node.attr}"
    if path.name == "__init__.py":
        yield from (f"defines {item.name}" for item in nodes if isinstance(item, (*FUNCTION, ast.ClassDef)))


def _takes_options(path, function):
    """A route, a command and a function for scripts have options, which a caller writes by name."""
    return path.relative_to(SOURCE).as_posix().startswith(OPTIONS_OF) or function.name in PUBLIC


def _is_public_method(node):
    is_method = isinstance(node, FUNCTION) and not node.name.startswith("_")
    decorators = {getattr(item, "id", "") for item in getattr(node, "decorator_list", ())}
    return is_method and decorators.isdisjoint({"property", "cached_property", "overload"})


def test_the_whole_grows_only_with_these_numbers():
    """Lines, modules and imports are at most what is written above; a module is not a fragment."""
    texts = [path.read_text() for path in MODULES]
    tests = [path.read_text() for path in Path(__file__).parent.rglob("*.py")]
    lines = [len(text.splitlines()) for text in texts]
    imports = sum(len(re.findall(r"^\s*(?:from|import) ", text, re.MULTILINE)) for text in texts)

    assert sum(lines) <= SOURCE_LINES_MAX
    assert len(lines) <= MODULES_MAX
    assert statistics.median(lines) >= MEDIAN_LINES_MIN
    assert imports <= IMPORT_LINES_MAX
    assert sum(len(text.splitlines()) for text in tests) <= TEST_LINES_MAX


def test_few_calls_lie_below_a_public_function():
    """A rule is read where it is used: chains of private functions do not grow."""
    depth, used_once = shape({_module_name(path): ast.parse(path.read_text()) for path in MODULES})

    assert depth <= DEPTH_MAX
    assert used_once <= USED_ONCE_PERCENT_MAX


def test_the_shape_of_a_chain_is_known():
    """Calls count by a plain name, an imported one, through self and to a class."""
    chain = """
from b import Thing as T
def first(): return _second()
def _second(): return _second() or T()
"""
    thing = """
class Thing:
    def __init__(self): self._one()
    def _one(self): first()
    def _two(self): return self._two, self._two
from a import first
"""

    assert shape({"a": ast.parse(chain), "b": ast.parse(thing)}) == (3, 20)


def _module_name(path):
    return ".".join(("freezeframe", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )


def shape(modules):
    """Return how deep nine of ten public functions go at most, and the per cent that are used once.

    The depth is that of the longest chain of calls which the text shows: by a name of the module, by an
    imported one, through ``self``. A private function is used once if its module has its name once.
    """
    functions = {
        (module, f"{owner}.{item.name}".lstrip(".")): (item, owner)
        for module, tree in modules.items()
        for owner, body in [
            ("", tree.body),
            *((c.name, c.body) for c in tree.body if isinstance(c, ast.ClassDef)),
        ]
        for item in body
        if isinstance(item, FUNCTION)
    }
    nodes = {module: list(ast.walk(tree)) for module, tree in modules.items()}
    imported = {
        (module, alias.asname or alias.name): (node.module, alias.name)
        for module in modules
        for node in nodes[module]
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def called(place):
        function, owner = functions[place]
        for node in ast.walk(function):
            match node:
                case ast.Call(func=ast.Name(id=name)):
                    near = (place[0], name)
                    for module, plain in {near, imported.get(near, near)}:
                        yield from ((module, plain), (module, f"{plain}.__init__"))
                case ast.Call(func=ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)):
                    yield place[0], f"{owner}.{name}"

    depths = {}

    def depth(place, above=()):
        if place not in depths:
            way = (*above, place)
            below = [other for other in sorted(set(called(place))) if other in functions and other not in way]
            depths[place] = max((1 + depth(other, way) for other in below), default=0)
        return depths[place]

    public = sorted(depth(place) for place in functions if not place[1].rpartition(".")[2].startswith("_"))
    uses = {
        module: Counter(getattr(node, "id", getattr(node, "attr", None)) for node in found)
        for module, found in nodes.items()
    }
    names = [(module, item.name) for (module, _), (item, _) in functions.items() if not item.decorator_list]
    once = [name for module, name in names if re.match("_[^_]", name) and uses[module][name] == 1]
    return public[len(public) * 9 // 10], round(100 * len(once) / len(functions))


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
        for package in SOURCE.iterdir()
        for folder in (package.iterdir() if package.is_dir() else ())
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
