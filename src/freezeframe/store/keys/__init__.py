"""Key search: locations of a batch's keys in a stream's files."""
