"""What is shipped with freezeframe, or installed beside it, is under licences that fit Apache-2.0."""

import re
from importlib import metadata

from packaging.requirements import Requirement

FITTING = {
    *("MIT", "MIT-0", "MIT License", "ISC", "ISC License (ISCL)", "0BSD", "Zlib", "CC0-1.0", "PSF-2.0"),
    "Python Software Foundation License",
    *("Apache-2.0", "Apache 2.0", "Apache Software License"),
    *("BSD-2-Clause", "BSD-3-Clause", "BSD License", "3-Clause BSD License"),
}
# Weak copyleft: used as the packages that they are, unchanged and not part of the wheel.
AS_A_PACKAGE = {
    "certifi": {"Mozilla Public License 2.0 (MPL 2.0)"},
    "psycopg": {"LGPL-3.0-only"},
    "psycopg-binary": {"LGPL-3.0-only"},
    "tqdm": {"MPL-2.0"},
}


def required(name, extras):
    """The normalized names of all that an installed package needs with some of its extras."""
    seen, waiting = set(), [(name, extra) for extra in ("", *extras)]
    while waiting:
        one = name, extra = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        for text in metadata.distribution(name).requires or ():
            need = Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                known = re.sub(r"[-_.]+", "-", need.name).lower()
                waiting += [(known, extra) for extra in ("", *need.extras)]
    return sorted({name for name, _ in seen})


def licences(name):
    """What a package says that it is under, one by one."""
    told = metadata.metadata(name)
    classified = [
        item.rpartition(":: ")[2] for item in told.get_all("Classifier", []) if "License ::" in item
    ]
    expression = re.sub("[()]", " ", told.get("License-Expression") or "")
    text = expression or ";".join(classified) or told.get("License") or ""
    return {item.strip() for item in re.split(r";| AND | OR |\n", text) if item.strip()}


def test_packages_are_under_licences_that_fit():
    """Every package of every extra; one that names no licence is found as well."""
    needed = required("freezeframe", ["all"])
    odd = {name: licences(name) for name in needed if name != "freezeframe"}
    odd = {
        name: found
        for name, found in odd.items()
        if not found or found - FITTING - AS_A_PACKAGE.get(name, set())
    }

    assert len(needed) > 80
    assert odd == {}
