"""Every parser of ours of what a request brings: twice the input takes at most 2.5 times the work."""

import io
from contextlib import suppress

import pyarrow as pa
import pytest
from fastapi import Request
from tests import given
from tests.asgi.growth import DOUBLINGS, RATIO_MAX, growth
from tests.examples import sampled

from freezeframe.asgi.bodies import announced_digest, strict_json
from freezeframe.asgi.routing import require_known
from freezeframe.errors import FreezeframeError
from freezeframe.log.scan.sql_predicate import parse_predicate
from freezeframe.script.inputs.transfer import file_rows
from freezeframe.service.jobs import parse_log_cursor
from freezeframe.service.rows.import_preview import ImportFile, import_preview
from freezeframe.service.signing import Cursors, ServiceSecret
from freezeframe.store.blobs.blob_store import from_json_bytes, merge_patch
from freezeframe.store.transaction.conditions import Conditions

pytestmark = [pytest.mark.long, pytest.mark.sampled]

BODY = 64 * 1024
TEXT = 8 * 1024
HEADER = 16 * 1024


def repeated(piece, *, begin=b"", end=b""):
    """A function that makes an input of so many bytes."""
    return lambda size: begin + piece * ((size - len(begin) - len(end)) // len(piece)) + end


def numbered(template, *, begin=b"", end=b"", between=b","):
    """The same with another number in each piece."""

    def made(size):
        count = size // (len(template) + 6)
        return begin + between.join(template.replace(b"#", b"%d" % number) for number in range(count)) + end

    return made


JSON_SHAPES = {
    "escaped quotes": repeated(b'\\"', begin=b'"'),
    "a quote and an escaped one": repeated(b'"\\"'),
    "unclosed texts": repeated(b'"'),
    "backslashes": repeated(b"\\", begin=b'"'),
    "brackets": repeated(b"["),
    "closed brackets": repeated(b"]"),
    "empty lists": repeated(b"[],", begin=b"[", end=b"[]]"),
    "empty objects": repeated(b"{},", begin=b"[", end=b"{}]"),
    "members": numbered(b'"m#":#', begin=b"{", end=b"}"),
    "the same member": repeated(b'"a":1,', begin=b"{", end=b'"a":1}'),
    "one long number": repeated(b"9"),
    "numbers": repeated(b"1e9,", begin=b"[", end=b"1]"),
    "half characters": repeated(b"\\ud800", begin=b'["', end=b'"]'),
    "escaped characters": repeated(b"\\u00e9", begin=b'"', end=b'"'),
    "spaces": repeated(b" "),
    "no JSON at the end": repeated(b"1,", begin=b"[", end=b"x"),
    "no UTF-8 at the end": repeated(b"1,", begin=b"[", end=b"\xff"),
}
CSV_SHAPES = {
    "quotes": repeated(b'"'),
    "a quote on each line": repeated(b'"\n', begin=b"Id\n"),
    "quoted fields": repeated(b'"a,\n""b"\n', begin=b"Id\n"),
    "a quote that is never closed": repeated(b"a,b\n", begin=b'Id,B\n"'),
    "an unclosed quote at the end": repeated(b"1,2\n", begin=b"Id,B\n", end=b'1,"'),
    "rows": repeated(b"1,2\n", begin=b"Id,B\n"),
    "a ragged row at the end": repeated(b"1,2\n", begin=b"Id,B\n", end=b"1,2,3\n"),
    "no UTF-8 at the end": repeated(b"1,2\n", begin=b"Id,B\n", end=b"\xff,2\n"),
    "line breaks": repeated(b"\n"),
    "carriage returns": repeated(b"\r"),
    "commas": repeated(b","),
    "columns": numbered(b"c#", begin=b"Id,", end=b"\n"),
    "one value": repeated(b"a", begin=b"Id\n"),
    "digits": repeated(b"9", begin=b"Id\n", end=b"\n"),
}
LINE_SHAPES = {
    "rows": repeated(b'{"Id":1,"B":"x"}\n'),
    "members of one row": numbered(b'"m#":1', begin=b"{", end=b"}"),
    "escaped quotes": repeated(b'\\"', begin=b'{"Id":"'),
    "brackets": repeated(b"[", begin=b'{"Id":'),
    "line breaks": repeated(b"\n"),
    "texts and numbers": repeated(b'{"Id":1}\n', end=b'{"Id":"x"}\n'),
    "no JSON at the end": repeated(b'{"Id":1}\n', end=b"{"),
}


KINDS = {"csv": CSV_SHAPES, "jsonl": LINE_SHAPES}
FILES = [(kind, name) for kind, shapes in KINDS.items() for name in shapes]


def grown(work, shape, size):
    """How the work of ``work``, whether it refuses or not, grows with each doubling of ``size`` bytes."""

    def tried(given):
        with suppress(FreezeframeError):
            work(given)

    return growth(tried, shape(size), shape(size << DOUBLINGS))


def patched(content):
    """Read a JSON file to patch it, and the patch."""
    value = from_json_bytes(content, "a.json")
    merge_patch({"kept": value}, {"kept": value})


@pytest.mark.parametrize("work", [strict_json, patched])
@pytest.mark.parametrize("name", sampled(JSON_SHAPES))
def test_json_bodies(name, work):
    """JSON, as every route reads it, and as files are patched."""
    assert grown(work, JSON_SHAPES[name], BODY) <= RATIO_MAX


@pytest.mark.parametrize(("kind", "name"), sampled(FILES))
def test_imports(tmp_path, kind, name):
    """Files of rows, as an import and a replaced stream read them."""
    file = tmp_path / f"rows.{kind}"

    def read(content):
        file.write_bytes(content)
        file_rows(file, stored=pa.schema({"Id": pa.int64()}))

    assert grown(read, KINDS[kind][name], TEXT) <= RATIO_MAX


@pytest.fixture
def tenant():
    """A tenant with a stream of some rows."""
    found = given.tenant()
    found.stream("Account").update(pa.table({"Id": [1, 2, 3]}), "Id")
    return found


@pytest.mark.parametrize(("kind", "name"), sampled(FILES))
def test_previews_of_a_beginning(tenant, kind, name):
    """The beginning of a longer file, whose last line may be cut off."""

    def previewed(content):
        file = ImportFile(kind, io.BytesIO(content), is_beginning=True)
        import_preview(tenant, "Account", file, ("Id",), {})

    assert grown(previewed, KINDS[kind][name], TEXT) <= RATIO_MAX


def digest_of(text):
    """Read the digest that a request announces."""
    announced_digest(Request({"type": "http", "headers": [(b"content-digest", text)]}))


HEADERS = {
    "a digest": (digest_of, repeated(b" ", end=b"sha-256=:")),
    "digests": (digest_of, repeated(b"sha-256=:A:,")),
    "tags": (lambda text: Conditions(text.decode()).require('"1"'), repeated(b'W/"1",')),
    "an unclosed tag": (lambda text: Conditions(text.decode()).require('"1"'), repeated(b" ", end=b'"')),
    "a cursor": (lambda text: Cursors(ServiceSecret(b"secret")).read("rows", text.decode()), repeated(b"A")),
    "a place in a log": (lambda text: parse_log_cursor(text.decode()), repeated(b"1")),
    "a query": (lambda text: require_known(text, frozenset({"a"})), repeated(b"a=1&")),
    "an encoded query": (lambda text: require_known(text, frozenset({"a"})), repeated(b"%26", begin=b"a=")),
}


@pytest.mark.parametrize("name", sampled(HEADERS))
def test_headers_and_queries(name):
    """What is read of headers and of the query."""
    work, shape = HEADERS[name]
    assert grown(work, shape, HEADER) <= RATIO_MAX


WHERE_SHAPES = {
    "spaces": repeated(b" ", begin=b"Id", end=b"x"),
    "is": repeated(b" is", begin=b"Id"),
    "spaces before null": repeated(b" ", begin=b"Id is not", end=b"nul"),
    "signs": repeated(b"=", begin=b"Id"),
    "digits": repeated(b"9", begin=b"Id = "),
    "a fraction": repeated(b"0", begin=b"Id = 1."),
    "quotes": repeated(b"'", begin=b"City = "),
    "backticks": repeated(b"`"),
    "brackets": repeated(b"("),
    "conditions": repeated(b" and Id = 1", begin=b"Id = 1"),
    "values": repeated(b"1,", begin=b"Id in (", end=b"1)"),
    "comments": repeated(b"/*", begin=b"Id = 1"),
    "no column": repeated(b"I"),
}


@pytest.mark.parametrize("name", sampled(WHERE_SHAPES))
def test_conditions_on_rows(name):
    """Where-clauses, for columns of each kind that text becomes."""
    for kind in (pa.int64(), pa.decimal128(20, 4), pa.timestamp("us", "UTC")):
        columns = pa.schema({"Id": kind, "City": pa.string()})

        def read(text, known=columns):
            parse_predicate(text.decode(), known)

        assert grown(read, WHERE_SHAPES[name], HEADER) <= RATIO_MAX


def test_the_measurement_sees_a_quadratic_parser():
    """What takes four times as long for twice the input is found."""

    def quadratic(content):
        for start in range(len(content)):
            content.count(b'"', start)

    assert growth(quadratic, b"a" * 4096, b"a" * (4096 << DOUBLINGS)) > RATIO_MAX
