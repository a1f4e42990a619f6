"""The public names are made of words that the glossary explains or that the field uses anyway."""

import dataclasses
import importlib
import inspect
import re
from pathlib import Path

import pytest

from freezeframe.store.files import Files
from freezeframe.store.job import Job
from freezeframe.store.model.update_options import UpdateOptions

PACKAGES = (
    "freezeframe",
    "freezeframe.gluestick",
    "freezeframe.log",
    "freezeframe.script",
)
GLOSSARY = Path(__file__).parent.parent.parent / "docs" / "glossary.md"
FIELD_WORDS = Path(__file__).parent / "field_words.txt"


def split_words(name):
    """The words of a name in snake or camel case, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def glossary_words():
    """The words of the glossary's terms."""
    rows = re.findall(r"^\| ([^|]+) \|", GLOSSARY.read_text(), re.MULTILINE)
    assert 30 < len(rows)
    return {word for row in rows[1:] for word in split_words(row)}


def field_words():
    """The checked-in words; a line that begins with # is a heading."""
    lines = FIELD_WORDS.read_text().splitlines()
    return [word for line in lines if not line.startswith("#") for word in line.split()]


def known_words():
    return glossary_words() | set(field_words())


def parameters_of(function):
    """The names of a function's parameters; none of a class that takes any."""
    try:
        return [name for name in inspect.signature(function).parameters if name != "self"]
    except (TypeError, ValueError):
        return []


def names_of_class(cls):
    """A class, its public attributes and methods, and their parameters."""
    yield cls.__name__
    if dataclasses.is_dataclass(cls):
        yield from (field.name for field in dataclasses.fields(cls))
    for name, member in inspect.getmembers(cls):
        if not name.startswith("_"):
            yield name
            yield from parameters_of(member) if callable(member) else ()


def public_names():
    """Each public name of the library, with where it is seen."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            member = getattr(module, name)
            yield name, package
            if isinstance(member, type):
                yield from ((one, f"{package}.{name}") for one in names_of_class(member))
            elif callable(member):
                yield from ((one, f"{package}.{name}") for one in parameters_of(member))
    for cls in (Job, Files):
        yield from ((one, cls.__name__) for one in names_of_class(cls))
    yield from ((option, "UpdateOptions") for option in UpdateOptions.__annotations__)


def unknown_words(names, known):
    """Words, and the names that they are in, which are known neither as they are nor in the singular."""
    return sorted(
        {
            f"{word} in {where}: {name}"
            for name, where in names
            for word in split_words(name)
            if word not in known and word.removesuffix("s") not in known
        }
    )


def test_public_names_use_known_words():
    """A new public name needs a word of the glossary or of the field; add a term to the glossary first."""
    names = list(public_names())
    assert 700 < len(names)
    assert unknown_words(names, known_words()) == []


@pytest.mark.parametrize(
    ("name", "words"), [("held_lock", ["held", "lock"]), ("ToldStream", ["told"]), ("get_snapshots", [])]
)
def test_an_unknown_word_is_found(name, words):
    """A name with a word of neither list is reported, in snake case and in camel case."""
    found = unknown_words([(name, "here")], known_words())
    assert words == [line.partition(" ")[0] for line in found]


def test_the_list_has_no_spare_words():
    """Each word of the list is in a public name, once, and not in the glossary."""
    words = field_words()
    used = {word for name, _ in public_names() for word in split_words(name)}
    used |= {word.removesuffix("s") for word in used}
    assert sorted(set(words)) == sorted(words)
    assert sorted(set(words) - used) == []
    assert sorted(set(words) & glossary_words()) == []
