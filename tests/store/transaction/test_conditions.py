"""If-Match and If-None-Match, as RFC 9110 has them."""

import json

import pyarrow as pa
import pytest
from tests import given

from freezeframe.errors import PreconditionFailed, PreconditionRequired, UnreadableRequest
from freezeframe.runs.process.import_script import main
from freezeframe.script.tenants import open_tenant
from freezeframe.storage import LocalStorage
from freezeframe.store.tenant import with_check
from freezeframe.store.transaction.conditions import Conditions, file_subject, stream_subject


@pytest.mark.parametrize(
    ("conditions", "etag"),
    [
        (Conditions(), None),
        (Conditions(), '"1"'),
        (Conditions(if_match="*"), '"1"'),
        (Conditions(if_match='"0", "1"'), '"1"'),
        (Conditions(if_match='"a,b"'), '"a,b"'),
        (Conditions(if_none_match="*"), None),
        (Conditions(if_none_match='"2"'), '"1"'),
    ],
)
def test_what_holds(conditions, etag):
    """A condition that is true of what is there lets the change through."""
    conditions.require(etag)


@pytest.mark.parametrize(
    ("conditions", "etag"),
    [
        (Conditions(if_match="*"), None),
        (Conditions(if_match='"1"'), None),
        (Conditions(if_match='"2"'), '"1"'),
        (Conditions(if_match='W/"1"'), '"1"'),
        (Conditions(if_none_match="*"), '"1"'),
        (Conditions(if_none_match='W/"1"'), '"1"'),
    ],
)
def test_what_does_not_hold(conditions, etag):
    """A weak tag is enough to say "not this one", and never to change something."""
    with pytest.raises(PreconditionFailed):
        conditions.require(etag)


@pytest.mark.parametrize("header", ["1", '"1', '"1" "2"', 'w/"1"', '"\x01"'])
def test_what_is_no_list_of_tags(header):
    """A header that cannot be read is refused, and not taken for one that does not hold."""
    with pytest.raises(UnreadableRequest):
        Conditions(if_match=header).require('"1"')


def test_strict_mode_wants_a_condition_for_what_is_there():
    """Something new needs none; "only if it is another one" is none that a change can rest on."""
    Conditions(strict=True).require(None)
    for item in (Conditions(strict=True), Conditions(if_none_match='"2"', strict=True)):
        with pytest.raises(PreconditionRequired):
            item.require('"1"')


def test_the_commit_checks_the_state_that_it_follows(tmp_path):
    """Somebody writes after the first look: that is told as the condition says, not as a conflict."""
    tenant = given.tenant(LocalStorage(tmp_path))
    tenant.files.write("a", b"first")
    tag = file_subject("a").tag(tenant.context, tenant.context.log.current_state())
    careful = with_check(tenant, Conditions(if_match=tag).at_commit(file_subject("a")))
    job = careful.job()
    job.__enter__().files.write("a", b"mine")
    tenant.files.write("a", b"theirs")
    with pytest.raises(PreconditionFailed):
        job.__exit__(None, None, None)

    assert tenant.files.read("a") == b"theirs"


@pytest.mark.parametrize("given", [{"if_match": '"0"'}, {"if_none_match": "*"}])
def test_an_import_keeps_the_conditions_of_its_request(tmp_path, given):
    """The stream has changed since the request was taken: the job is refused, and nothing is written."""
    root = tmp_path / "root"
    (root / "sync-output").mkdir(parents=True)
    (root / "sync-output" / "rows.csv").write_text("Id\n2\n")
    stream = open_tenant(root / "snapshots").stream("Account")
    for rows in ([1], [3]):
        stream.update(pa.table({"Id": rows}), "Id")
    options = {"stream": "Account", "file": "rows.csv", "key": ["Id"], "conditions": given}
    with pytest.raises(PreconditionFailed):
        main({"ROOT_DIR": str(root), "PARAM_IMPORT_OPTIONS": json.dumps(options)})
    before = stream.count()
    context = stream.scope.context
    now = stream_subject("Account").tag(context, context.log.current_state())
    options["conditions"] = {"if_match": now}
    main({"ROOT_DIR": str(root), "PARAM_IMPORT_OPTIONS": json.dumps(options)})

    assert (before, stream.count()) == (2, 3)
