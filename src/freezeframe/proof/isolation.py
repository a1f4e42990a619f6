"""Two tenants of a store: under no name does one of them reach the other, by reading or by writing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from freezeframe.errors import FreezeframeError
from freezeframe.proof.model import frame
from freezeframe.proof.place import Place
from freezeframe.proof.task import Task
from freezeframe.settings import Settings
from freezeframe.store import Tenant
from freezeframe.store.diff.arrow_engine import ArrowEngine
from freezeframe.store.snapshot_store import Store

PROMISE = "A tenant sees and changes its own directory only, whatever the names that it is given."


def run(task: Task) -> None:
    """See the module."""
    for place, random in task.rounds():
        storage = place.storage()
        store = Store(storage, ArrowEngine(storage), Settings(engine="auto"))
        canary = random.randbytes(16).hex()
        mine, theirs = store.tenant("mine", create=True), store.tenant("theirs", create=True)
        mine.stream("Account").update(frame({"a": 1}), key="Id")
        mine.files.write("config.json", b"mine")
        theirs.stream("Secret").update(frame({canary: 1}), key="Id")
        theirs.files.write("secret.json", canary.encode())
        other = str(store.folder("theirs"))
        before = _digests(place, other)
        for name in _names(other):
            for seen in _answers(mine, name):
                task.require(canary not in seen, f"{name!r} gave one tenant the content of the other")
                task.counts["attempts"] += 1
        task.require(_digests(place, other) == before, "one tenant's calls changed a file of the other")
        seen = repr([mine.streams(), mine.files.list(recursive=True)])
        task.require("Secret" not in seen and "secret.json" not in seen, "one tenant lists the other's names")


def _names(other: str) -> Iterator[str]:
    """Names of the other tenant's stream and files, as an attacker writes them."""
    targets = [
        f"{other}/Secret",
        f"{other}/Secret.snapshot",
        f"{other}/secret.json",
        f"{other}/_freezeframe/log",
    ]
    for target in [*targets, "theirs/Secret", "theirs/secret.json", "Secret", "secret.json"]:
        for climb in (
            "",
            "../",
            "../../",
            "./../",
            "a/../../",
            "%2e%2e/",
            "..%2f",
            "..\\",
            "/",
            "//",
            "\0/",
            "~/",
        ):
            yield f"{climb}{target}"
            yield f"{climb}{target}".replace("/", "\\")
            yield f"{climb}{target}".upper()


def _answers(tenant: Tenant, name: str) -> Iterator[str]:
    """What each call says about a name: its result, or its error."""
    calls = (
        lambda: tenant.stream(name).read(as_="arrow").to_pydict(),
        lambda: tenant.stream(name).update(frame({"planted": 1}), key="Id"),
        lambda: tenant.files.read(name),
        lambda: tenant.files.write(name, b"planted"),
        lambda: tenant.files.delete(name),
        lambda: tenant.drop_stream(name),
        lambda: tenant.adopt(name, key="Id"),
    )
    for call in calls:
        try:
            yield repr(call())
        except FreezeframeError as error:
            yield f"{error!r} {error}"


def _digests(place: Place, folder: str) -> dict[str, bytes]:
    storage = place.storage()
    names = sorted(one.name for one in storage.list_below("") if folder in one.name)
    return {name: hashlib.sha256(storage.read(name)).digest() for name in names}
