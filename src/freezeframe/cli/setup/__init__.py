"""``freezeframe init|config|doctor``: a project, its settings, and whether the machine is ready."""
