# ruff: noqa: E501 - pools of values read better on one line
"""Requests made up from the API's description and a seed: good ones, nearly good ones and bytes of any kind."""

import base64
import io
import json
import random
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = pa.table({"Id": ["007", "1", "2"], "City": ["Bern", "", None], "n": [1, None, 3]})
OWN, FOREIGN = "Kåfé", "globex"
# Nothing ever has this tag: a change that asks for it must be refused by every operation.
NEVER = '"never"'
CONDITION_HEADERS = ("if-match", "if-none-match")
STREAMS = ("Account", "Lead", "Neu ö", unicodedata.normalize("NFD", "Neu ö"))
FILES = ("a.txt", "notes/b.json", "notes/deep/ä.csv", "tenant-config.json", "Account.snapshot.csv")
ODD = (
    "", " ", ".", "..", "../a", "a/../b", "\\", "%", "*", "a" * 300, "_freezeframe", "\u202e", "\ufeff", "nul",
    "😀" * 60, "x.snapshot", "\u212a", "e\u0301", "null", "-1", "1e9", "0x1", "9" * 30, "true", "[]", "{}", "\x7f",
)  # fmt: skip
MOMENTS = ("2026-01-01", "2100-01-01T00:00:00Z", "0001-01-01", "now", "99999-01-01")
CONDITIONS = (
    "Id = 007",
    "City is null",
    "n > 1",
    "n = x",
    "City = ",
    "Id",
    "Nope = 1",
    "n <= 1e400",
    "City='",
)


@dataclass(frozen=True)
class Operation:
    """A method and a path, the parameters and the media types that the description knows."""

    method: str
    path: str
    query: tuple
    headers: tuple
    kinds: tuple


def operations(described):
    """All operations but those that take a tenant away or wait for what never comes."""
    found = []
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            takes_tenant = method == "delete" and path.endswith("/tenants/{tenant}")
            if takes_tenant or path.endswith("/logs"):
                continue
            given = one.get("parameters", ())
            found.append(
                Operation(
                    method.upper(),
                    path,
                    tuple(each["name"] for each in given if each["in"] == "query"),
                    tuple(each["name"] for each in given if each["in"] == "header"),
                    tuple(one.get("requestBody", {}).get("content", ())),
                )
            )
    return found


def _parquet():
    sink = io.BytesIO()
    pq.write_table(ROWS, sink)
    return sink.getvalue()


def _arrow():
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, ROWS.schema) as writer:
        writer.write_table(ROWS)
    return sink.getvalue()


CONTENTS = {
    "text/csv": b"Id,City,n\n007,Thun,1\n9,Genf,\n",
    "application/vnd.apache.parquet": _parquet(),
    "application/x-ndjson": b'{"Id":"007","City":"Thun"}\n{"Id":"9"}\n',
    "application/vnd.apache.arrow.stream": _arrow(),
    "application/octet-stream": b"bytes",
    "multipart/form-data": b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n1\r\n--x--\r\n',
}


class Requests:
    """A source of requests; the same for the same seed."""

    def __init__(self, described, seed):
        self._draw = random.Random(seed)
        self._operations = operations(described)
        self._cursors = ["AAAA"]
        self._ids = ["job-1", "0" * 32]
        self._tags = ['"0"', '"1"']

    def learn(self, body, etag=""):
        """Keep cursors, ids and the tag of an answer, to be used again, for others as well."""
        self._tags = [*self._tags, etag][-20:] if etag else self._tags
        try:
            told = json.loads(body)
        except ValueError:
            return
        if isinstance(told, dict):
            self._cursors += [told["next_cursor"]] if isinstance(told.get("next_cursor"), str) else []
            self._ids += [told[name] for name in ("id", "job_id") if isinstance(told.get(name), str)]
        del self._cursors[:-50], self._ids[:-50]

    def next(self):
        """Method, target, headers and body of the next one."""
        draw, one = self._draw, self._draw.choice(self._operations)
        target = one.path
        for name in (
            "environment",
            "env_id",
            "tenant",
            "stream",
            "path",
            "tag",
            "job_id",
            "blob_id",
            "key_id",
        ):
            target = target.replace(f"{{{name}}}", quote(self._named(name), safe=""))
        pairs = [
            f"{quote(name)}={quote(self._value(name), safe='')}" for name in one.query if draw.random() < 0.4
        ]
        if one.path.endswith("/events"):
            pairs = [*(pair for pair in pairs if not pair.startswith("seconds")), "seconds=0"]
        if draw.random() < 0.03:
            pairs.append("odd=1")
        names = [name for name in one.headers if draw.random() < 0.3]
        if one.method != "GET" and draw.random() < 0.2:  # also where the operation does not know it
            names.append(draw.choice(CONDITION_HEADERS))
        headers = [(name, self._header(name)) for name in dict.fromkeys(names)]
        kind, body = self._body(one)
        headers += [("content-type", kind)] if kind else []
        encoded = [(name.encode(), text.encode("utf-8", "replace")) for name, text in headers]
        return one.method, f"{target}?{'&'.join(pairs)}" if pairs else target, encoded, body

    def _named(self, name):
        draw = self._draw
        if draw.random() < 0.08:
            return draw.choice(ODD)
        if name in {"environment", "env_id"}:
            return draw.choice(("dev",) * 9 + ("other",))
        if name == "tenant":
            return draw.choice((OWN,) * 6 + (unicodedata.normalize("NFD", OWN), FOREIGN, FOREIGN, "absent"))
        if name == "stream":
            return draw.choice(STREAMS)
        if name == "path":
            return draw.choice(FILES)
        if name == "tag":
            return draw.choice(("one", "two", "ö"))
        return draw.choice(self._ids)

    def _value(self, name):
        draw = self._draw
        if draw.random() < 0.15:
            return draw.choice(ODD)
        known = {
            "cursor": self._cursors, "as_of": MOMENTS, "where": CONDITIONS, "columns": ("Id", "City", "n"),
            "by": ("Id", "n", "City"), "key": ("Id", "n"), "mode": ("upsert", "full"), "prefix": ("", "g", "K"),
            "format": ("csv", "parquet", "jsonl"), "kind": ("csv", "parquet", "jsonl", "arrow"), "folder": ("", "notes", "notes/deep"), "environment": ("dev",),
            "status": ("queued", "failed"), "action": ("file.write", "file.unseal"), "job_id": self._ids,
        }.get(name)  # fmt: skip
        if known is not None:
            return draw.choice(known)
        if name in {"tenant", "stream", "path", "file"}:
            return self._named("path" if name == "file" else name)
        if name in {"count", "recursive", "beginning", "descending", "sealed", "texts"}:
            return draw.choice(("true", "false"))
        return str(draw.choice((0, 1, 2, 3, 5, 1000)))

    def _header(self, name):
        odd = (
            "",
            "*",
            '"0"',
            '"1"',
            'W/"0"',
            "bytes=0-1",
            "bytes=-1",
            "bytes=9-",
            "0",
            "4",
            "x" * 201,
        )
        if name in CONDITION_HEADERS and self._draw.random() < 0.7:
            return self._draw.choice((*self._tags, f"{self._tags[-1]}, {NEVER}", "*", NEVER))
        if name == "idempotency-key":
            return self._draw.choice(("k1", "k2", "k3", *odd))
        return self._draw.choice(odd)

    def _body(self, one):
        draw = self._draw
        if not one.kinds and draw.random() < 0.9:
            return "", b""
        kind = draw.choice(one.kinds or tuple(CONTENTS))
        content = CONTENTS.get(kind) or (
            json.dumps(self._order(3)).encode() if "json" in kind else b"Id,City\n1,a\n"
        )
        if draw.random() < 0.25:
            content = self._damaged(content)
        if draw.random() < 0.1:
            kind = draw.choice((*CONTENTS, "application/json", "application/x+json", ";", ""))
        return kind.replace("multipart/form-data", "multipart/form-data; boundary=x"), content

    def _order(self, depth):
        """A body with members that orders have, of values that they may have, and others."""
        draw = self._draw
        names = (
            "tenant", "path", "target", "version", "streams", "files", "folders", "paths", "message", "dry_run",
            "keys", "script", "job_id", "parameters", "keep_versions", "keep_days", "blob", "kind", "config",
            "metadata", "mapping", "flow", "content", "file", "name", "scopes", "source", "source_folder",
        )  # fmt: skip
        return {name: self._member(name, depth) for name in draw.sample(names, draw.randrange(1, 6))}

    def _member(self, name, depth):
        draw = self._draw
        if draw.random() < 0.1:
            return draw.choice((None, True, -1, 2**70, 1.5, "", [], {}, draw.choice(ODD)))
        if name in {"version", "keep_versions", "keep_days"}:
            return draw.randrange(6)
        if name in {"streams", "files", "paths", "folders"}:
            return [self._named("stream" if name == "streams" else "path") for _ in range(draw.randrange(3))]
        if name in {"config", "metadata", "mapping", "parameters"}:
            return self._order(depth - 1) if depth else {}
        if name == "keys":
            return [{"Id": "007"}]
        if name == "content":
            return base64.b64encode(CONTENTS["text/csv"]).decode()
        if name in {"path", "target", "file", "source", "source_folder"}:
            return self._named("path")
        return (
            self._named(name) if name in {"tenant", "job_id"} else draw.choice(("a", "csv", "import", "true"))
        )

    def _damaged(self, content):
        draw, found = self._draw, bytearray(content)
        for _ in range(draw.randrange(1, 6)):
            place = draw.randrange(len(found) + 1)
            match draw.randrange(4):
                case 0:
                    del found[place:]
                case 1:
                    found[place:place] = draw.randbytes(draw.randrange(1, 9))
                case 2 if found:
                    found[place % len(found)] ^= 1 << draw.randrange(8)
                case _:
                    found[place:place] = (
                        draw.choice((b'"', b"\\", b"{", b"[", b"\xff", b"\0", b"\n", b'"\\"')) * 9
                    )
        return bytes(found)
