"""What a transformation script calls: reading what a sync left, and the snapshots of a tenant."""
