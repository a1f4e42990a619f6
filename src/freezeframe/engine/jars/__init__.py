"""Additional jars for stores in a bucket: their list and their download."""

from freezeframe.engine.jars.fetching import Fetched, fetch
from freezeframe.engine.jars.jar import Jar, JarSet, locked_jars, parse_lock, pom, present

__all__ = ["Fetched", "Jar", "JarSet", "fetch", "locked_jars", "parse_lock", "pom", "present"]
