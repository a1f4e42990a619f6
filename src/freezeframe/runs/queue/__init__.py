"""Jobs of the queue: claimed, kept alive, ended, taken over."""
