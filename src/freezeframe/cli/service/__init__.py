"""``freezeframe serve|key|person``: the REST service, and who may use it."""
