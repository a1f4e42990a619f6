"""A Singer target: a tap's messages become rows and a file of one tenant, in one commit."""
