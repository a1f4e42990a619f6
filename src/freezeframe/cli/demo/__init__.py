"""``freezeframe demo``: two syncs of a tenant, a second tenant beside it, and a look back in time."""

from freezeframe.cli.demo.command import demo

__all__ = ["demo"]
