"""The ``freezeframe`` command."""
