"""Public names of a package, each loaded when it is first used.

So ``import freezeframe`` takes hundredths of a second, and a program that only reads loads no Spark.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package (PEP 562) whose names live in other modules.

    ``modules`` has the module of each name; one that begins with a dot is beneath the package.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(modules[name], package), name)

    return load, lambda: sorted(modules)
