"""The files of a log: their choice for a version, their content, and the state they add up to."""
