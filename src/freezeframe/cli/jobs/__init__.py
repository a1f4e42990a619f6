"""``freezeframe run|job|schedule|worker``: scripts for a tenant, now, queued and again and again."""
