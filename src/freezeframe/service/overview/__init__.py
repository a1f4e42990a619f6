"""A tenant at a glance, how it grew, and what changes while somebody looks on."""
