"""No operation, under no name, gives anything of another tenant or changes it."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from freezeframe.errors import FreezeframeError
from freezeframe.settings import Settings
from freezeframe.storage import LocalStorage
from freezeframe.store.diff.counts import ArrowEngine
from freezeframe.store.files import Files
from freezeframe.store.snapshot_store import Store
from freezeframe.store.stream import Stream

CANARY = "canary-5b7e90d1c3f8"
ROWS = pa.table({"Id": [CANARY], "v": [CANARY]})

STREAM_CALLS = {
    "update": lambda t, n: t.stream(n).update(pa.table({"Id": ["1"], "v": ["x"]}), key="Id"),
    "override": lambda t, n: t.stream(n).update(pa.table({"Id": ["1"]}), key="Id", override=True),
    "preview": lambda t, n: t.stream(n).preview(pa.table({"Id": ["1"]}), key="Id"),
    "explain": lambda t, n: t.stream(n).explain(),
    "read_batches": lambda t, n: t.stream(n).read_batches().read_all(),
    "read": lambda t, n: t.stream(n).read(as_="arrow").to_pydict(),
    "read an old one": lambda t, n: t.stream(n).read(version=0, as_="arrow").to_pydict(),
    "as frames": lambda t, n: (t.stream(n).to_pandas(), t.stream(n).to_arrow(), t.stream(n).to_polars()),
    "head": lambda t, n: t.stream(n).head(),
    "changes": lambda t, n: t.stream(n).changes(0, as_="arrow"),
    "row_history": lambda t, n: t.stream(n).row_history("1"),
    "row_origin": lambda t, n: t.stream(n).row_origin("1"),
    "snapshot": lambda t, n: t.stream(n).snapshot(version=0),
    "columns": lambda t, n: t.stream(n).schema,
    "version": lambda t, n: t.stream(n).version,
    "stream_version": lambda t, n: t.stream(n).stream_version,
    "row_count": lambda t, n: t.stream(n).count(),
    "retype": lambda t, n: t.stream(n).retype("v", "string"),
    "release": lambda t, n: t.stream(n).release(),
    "repair": lambda t, n: t.stream(n).repair(),
    "adopt": lambda t, n: t.adopt(n, key="Id"),
    "drop": lambda t, n: t.drop_stream(n),
    "erase": lambda t, n: t.erase(n, [CANARY]),
    "restore": lambda t, n: t.restore(0, streams=[n]),
    "history": lambda t, n: list(t.history(stream=n)),
    "at": lambda t, n: t.at(0).stream(n).read(as_="arrow").to_pydict(),
}
FILE_CALLS = {
    "read": lambda t, n: t.files.read(n),
    "read an old one": lambda t, n: t.files.read(n, version=0),
    "chunks": lambda t, n: b"".join(t.files.chunks(n)),
    "read_text": lambda t, n: t.files.read_text(n),
    "read_json": lambda t, n: t.files.read_json(n),
    "part": lambda t, n: b"".join(t.files.part(n, 0, 9)),
    "entry": lambda t, n: t.files.entry(n),
    "exists": lambda t, n: t.files.exists(n) or None,
    "list": lambda t, n: t.files.list(n, recursive=True),
    "page": lambda t, n: list(t.files.page(n, recursive=True)),
    "folders": lambda t, n: t.files.folders(n, recursive=True),
    "write": lambda t, n: t.files.write(n, b"x"),
    "patch": lambda t, n: t.files.patch_json(n, {"a": 1}),
    "delete": lambda t, n: t.files.delete(n),
    "move from": lambda t, n: t.files.move(n, "mine"),
    "move to": lambda t, n: t.files.move("own.txt", n),
    "history": lambda t, n: list(t.files.history(n)),
    "restore": lambda t, n: t.restore(0, files=[n]),
    "diff": lambda t, n: t.files.write_text("own.txt", n) and t.diff(0),
    "tag": lambda t, n: t.tag(n),
    "job": lambda t, n: list(t.history(job_id=n)),
}
STORE_CALLS = {
    "open": lambda s, n: content(s.tenant(n)),
    "clone": lambda s, n: content(s.clone_tenant(n, "copy")),
    "delete": lambda s, n: s.delete_tenant(n),
    "list": lambda s, n: s.tenants(prefix=n),
}


def content(tenant):
    return (
        [tenant.stream(name).read(as_="arrow").to_pydict() for name in tenant.streams()],
        [tenant.files.read(item.path) for item in tenant.files.list(recursive=True)],
    )


def tree(folder):
    """Every file and folder with its bytes, its kind and the time of its last change."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def two(tmp_path):
    """A store, the other tenant's folder in it, and the names that somebody might try to get there."""
    root = tmp_path / "store"
    theirs = Store(LocalStorage(root), None, Settings(), environment="theirs").tenant("victim", create=True)
    theirs.stream("Theirs").update(ROWS, key="Id")
    theirs.files.write("theirs.json", f'{{"a": "{CANARY}"}}'.encode())
    (folder,) = (root / "tenants").iterdir()
    store = Store(LocalStorage(root), ArrowEngine(), Settings())
    ours = store.tenant("ours", create=True)
    ours.files.write("own.txt", b"own")
    blob = next(path for path in (folder / "_freezeframe" / "blobs").rglob("*") if path.is_file())
    inside = str(blob.relative_to(folder))
    forged = [
        "Theirs", "theirs.json", "victim", folder.name, f"theirs/{folder.name}",
        f"../{folder.name}/Theirs", f"../{folder.name}/theirs.json", f"../{folder.name}/{inside}",
        f"tenants/{folder.name}/{inside}", str(blob), f"a/../../{folder.name}/{inside}",
        f"%2e%2e/{folder.name}", f"..\\{folder.name}", f"..%252f{folder.name}", "..", ".", "", "/", "~",
        f"file://{blob}", f"Theirs\0{folder.name}", "VICTIM", "vict\u0131m", "theirs.json#x", "_freezeframe",
        "_freezeframe/log", f"_freezeframe/blobs/{blob.name}", "Theirs.snapshot",
        "../../_freezeframe/registry",
    ]  # fmt: skip
    return root, folder, store, ours, forged


def tried(call, target, name):
    """What an operation says, in an answer or in an error."""
    try:
        return repr(call(target, name))
    except FreezeframeError as error:
        return f"{error!r} {error} {vars(error)}"


@pytest.mark.parametrize("kind", ["streams", "files", "tenants"])
def test_no_operation_reaches_another_tenant(two, kind):
    """Every operation with every foreign or forged name: no canary in an answer, no change over there."""
    _root, folder, store, ours, forged = two
    before = tree(folder)
    calls, target = {
        "streams": (STREAM_CALLS, ours),
        "files": (FILE_CALLS, ours),
        "tenants": (STORE_CALLS, store),
    }[kind]
    asked = 0
    for what, call in calls.items():
        for name in forged:
            said = tried(call, target, name)
            # A name that was asked for may be repeated; what it stands for may not be told.
            assert CANARY not in said.replace(name or "\0", ""), (what, name)
            asked += 1
    assert before == tree(folder)
    assert len(calls) * len(forged) == asked


def test_the_checks_would_find_a_leak(two):
    """The same calls on the other tenant itself do tell the canary, and do change its tree."""
    root, folder, _store, _ours, _forged = two
    theirs = Store(LocalStorage(root), None, Settings(), environment="theirs")
    before = tree(folder)

    assert CANARY in tried(STREAM_CALLS["read"], theirs.tenant("victim"), "Theirs")
    assert CANARY in tried(FILE_CALLS["read"], theirs.tenant("victim"), "theirs.json")
    assert CANARY in tried(STORE_CALLS["open"], theirs, "victim")
    tried(FILE_CALLS["delete"], theirs.tenant("victim"), "theirs.json")
    assert before != tree(folder)


def test_every_operation_is_tried():
    """What is new in the library's face has to be tried here as well."""
    text = "\n".join(re.findall(r"lambda.*", Path(__file__).read_text()))

    takes_no_name = {
        "apply",
        "with_source",
        "update_and_read",
        "preview_and_read",
        "table_before",
        "to_spark",
        "write_text",
        "write_json",
    }
    for face in (Files, Stream):
        for name, member in vars(face).items():
            is_call = not (name.startswith("_") or isinstance(member, property))
            if is_call and name not in takes_no_name:
                assert f".{name}(" in text, name
