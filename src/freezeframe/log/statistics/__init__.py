"""Statistics of data files, and which files a predicate can skip."""
