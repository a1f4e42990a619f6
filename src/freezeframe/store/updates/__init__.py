"""One update of one stream: its source rows, its plan, its route, its written files."""
