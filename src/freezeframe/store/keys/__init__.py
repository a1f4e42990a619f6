"""Where the keys of a batch are in a stream's files."""
