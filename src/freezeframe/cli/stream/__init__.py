"""``freezeframe stream``: one stream of a tenant."""
