"""Reading checkpoints, checksums and the hint to the newest checkpoint."""
