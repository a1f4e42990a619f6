"""Configurations that are not sealed are found before a store is served."""

from freezeframe.service.access.access import Stores, unsealed_configurations
from freezeframe.settings import Settings


def test_configurations_that_are_not_sealed_are_named(tmp_path):
    """A configuration in the clear is named with its tenant; sealed ones and other files are not."""
    (tmp_path / "key").write_bytes(b"k" * 32)
    (tmp_path / "key").chmod(0o600)
    stores = Stores(str(tmp_path / "store"), Settings(master_key_file=tmp_path / "key"))
    store = stores.environment("dev")
    store.tenant("a", create=True).files.write("tenant-config.json", b"{}", sealed=True)
    store.tenant("b", create=True).files.write("mappings/a.csv", b"Id\n")
    assert list(unsealed_configurations(stores)) == []
    store.tenant("c", create=True).files.write("tap/config.json", b"{}")
    assert list(unsealed_configurations(stores)) == ["dev/c/tap/config.json"]
    assert list(unsealed_configurations(stores, tenants_max=2)) == []
