"""``freezeframe serve|key|audit``: the REST service, and who may use it."""
