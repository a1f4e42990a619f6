"""One update of one stream: its rows, its plan, the route it takes, the files that it writes."""
