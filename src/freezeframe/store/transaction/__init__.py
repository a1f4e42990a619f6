"""A job: changes of several streams and files that are committed together."""
