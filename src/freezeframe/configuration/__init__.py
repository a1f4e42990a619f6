"""Where settings are written and which source wins: the files, the environment, and flags."""
