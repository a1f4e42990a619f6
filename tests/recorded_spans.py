"""A tracer of OpenTelemetry's API that keeps the spans that ended."""

from contextlib import contextmanager

import pytest
from opentelemetry import trace


class RecordedSpan(trace.NonRecordingSpan):
    """A span with its parent, and what it was told."""

    def __init__(self, name, parent, ended):
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.name, self.parent, self.attributes, self._ended = name, parent, {}, ended

    @property
    def shape(self):
        """The names of its parent (None: it has none) and its own."""
        return getattr(self.parent, "name", None), self.name

    def is_recording(self):
        return True

    def update_name(self, name):
        self.name = name

    def set_attributes(self, attributes):
        self.attributes.update(attributes)

    def end(self, *_):
        self._ended.append(self)


class RecordingTracer(trace.NoOpTracer):
    """Makes spans that are kept in ``ended`` when they end."""

    def __init__(self, ended):
        self._ended = ended

    @contextmanager
    def start_as_current_span(self, name, **_):
        span = RecordedSpan(name, trace.get_current_span(), self._ended)
        with trace.use_span(span, end_on_exit=True):
            yield span


@pytest.fixture
def spans(monkeypatch):
    """The spans that end during the test, in that order."""
    ended = []
    monkeypatch.setattr(trace, "get_tracer", lambda _: RecordingTracer(ended))
    return ended
