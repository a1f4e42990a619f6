"""A clock that stands still until it is set forward, at the seam where the database says what time it is."""


class ManualClock:
    """Milliseconds since 1970, beginning on 2026-11-21 08:00 UTC."""

    def __init__(self):
        self.now_ms = 1_795_248_000_000

    def __call__(self, _connection):
        return self.now_ms

    def forward(self, seconds):
        """Let so much time pass."""
        self.now_ms += round(seconds * 1000)
