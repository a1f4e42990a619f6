"""Jars beside Spark's own, that stores in a bucket need: which they are, and how they come here."""

from freezeframe.engine.jars.fetching import Fetched, fetch
from freezeframe.engine.jars.jar import Jar, JarSet, locked_jars, parse_lock, pom, present

__all__ = ["Fetched", "Jar", "JarSet", "fetch", "locked_jars", "parse_lock", "pom", "present"]
