"""Which files of a log make a version, and how a newer one is found."""
