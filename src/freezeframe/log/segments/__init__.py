"""Log segments (the files of one version), and the update to newer ones."""
