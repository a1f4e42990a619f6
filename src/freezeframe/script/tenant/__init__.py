"""The tenant, the store and the job that a script works in; the files that it finds in its folder."""
