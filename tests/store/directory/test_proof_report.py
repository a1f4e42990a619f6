"""The report of the last proof lies in the store."""

import pytest

import freezeframe as ff
from freezeframe.errors import CorruptData
from freezeframe.storage import LocalStorage
from freezeframe.store.model.directory import keep_proof_report, last_proof_report


def test_the_last_report_is_kept_in_a_store(tmp_path):
    """In place of the one before; the store and its tenants stay what they are."""
    store = ff.open(tmp_path, engine="auto")
    store.tenant("acme", create=True).files.write("a", b"1")
    storage = LocalStorage(tmp_path)

    assert last_proof_report(storage) is None
    assert [keep_proof_report(storage, {"seed": seed}) for seed in (1, 2)] == [True, True]
    assert last_proof_report(storage) == {"seed": 2}
    assert (store.tenants(), store.tenant("acme").verify().is_sound) == (("acme",), True)


def test_nothing_is_left_where_there_is_no_store(tmp_path):
    """Somebody may try any directory."""
    assert keep_proof_report(LocalStorage(tmp_path), {"seed": 1}) is False
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
def test_a_damaged_report_is_told(tmp_path, content):
    """With how it is written anew."""
    (tmp_path / "_freezeframe").mkdir()
    (tmp_path / "_freezeframe" / "proof.json").write_bytes(content)
    with pytest.raises(CorruptData, match=r"proof\.json") as told:
        last_proof_report(LocalStorage(tmp_path))
    assert "freezeframe prove" in told.value.remedy
