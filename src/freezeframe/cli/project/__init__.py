"""The files of a new project, as ``freezeframe init`` writes them."""
