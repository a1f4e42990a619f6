"""The commands, a module for each group; `application` loads them when they are used."""
