"""The steps from each version of the control database to the next; Alembic runs them.

One file to a step, ``NNNN_<what>.py``; the numbers are the versions.
"""
