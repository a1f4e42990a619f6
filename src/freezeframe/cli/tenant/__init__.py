"""``freezeframe tenant``: the tenants of a store, and one of them as a whole."""
