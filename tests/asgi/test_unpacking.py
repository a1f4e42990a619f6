"""Small bodies that unpack to a lot are 413, whatever takes them, and change nothing."""

import pytest
from tests.script.bombs import arrow_text, arrow_zeros, json_names, parquet_numbers, parquet_text

TYPES = {
    parquet_text: "application/vnd.apache.parquet",
    parquet_numbers: "application/vnd.apache.parquet",
    arrow_zeros: "application/vnd.apache.arrow.stream",
    arrow_text: "application/vnd.apache.arrow.stream",
    json_names: "application/x-ndjson",
}
SAID_BEFORE = {parquet_numbers, arrow_zeros, arrow_text}


@pytest.mark.parametrize("make", TYPES, ids=lambda item: item.__name__)
def test_a_body_that_unpacks_to_a_lot_is_refused(api, acme, tmp_path, make):
    """The preview, the import where the file says so itself, and the replaced stream; the limit is named."""
    make(tmp_path / "a")
    body, headers = (tmp_path / "a").read_bytes(), {"content-type": TYPES[make]}
    answers = [api.post(f"{acme}/streams/S/import-preview?key=Id", content=body, headers=headers)]
    if make in SAID_BEFORE:
        answers.append(api.post(f"{acme}/streams/S/import?key=Id", content=body, headers=headers))
    if "parquet" in make.__name__:
        tenant = acme.rpartition("/")[2]
        answers.append(api.put(f"/tenant/dev/{tenant}/snapshots?file=S.snapshot.parquet", content=body))

    for answer in answers:
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (413, "UNPACKS_TOO_LARGE")
        assert problem["limit"] in problem["cause"]
        assert isinstance(problem["limit_value"], int | float)
        assert "/tmp" not in answer.text
    assert api.get(acme).json()["version"] == -1
    assert api.get(f"{acme}/jobs").json()["jobs"] == []
