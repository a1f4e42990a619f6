"""The queue and the schedules."""
