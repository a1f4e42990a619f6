"""Which tables are read, and which are refused by name."""

import pytest
from tests.log.tables import TableBuilder

from freezeframe.errors import UnsupportedTable
from freezeframe.log.format.actions import Metadata, Protocol
from freezeframe.log.format.protocol import READER_FEATURES, mismatched_features, require_readable


@pytest.mark.parametrize(
    ("protocol", "code"),
    [
        (Protocol(99, 7), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(1, 99), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(2, 7, ("deletionVectors",)), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(3, 7, None, ("appendOnly",)), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(3, 6, ()), "DELTA_INVALID_PROTOCOL_VERSION"),
        (Protocol(3, 7, ("adaptiveMetadata-preview",)), "DELTA_UNSUPPORTED_FEATURES_FOR_READ"),
        (Protocol(3, 7, ("catalogManaged",)), "DELTA_UNSUPPORTED_FEATURES_FOR_READ"),
        (Protocol(3, 7, ("geospatial",)), "DELTA_GEOSPATIAL_NOT_SUPPORTED"),
    ],
)
def test_b058_what_is_not_known_is_refused_with_deltas_error_class(protocol, code):
    """A version or reader feature that is not known would give wrong rows."""
    with pytest.raises(UnsupportedTable) as caught:
        TableBuilder().create(protocol).log()
    assert code == caught.value.error_code


def test_b058_every_known_reader_feature_and_any_writer_feature_is_read():
    """A feature that concerns writers only never stops a reader."""
    known = tuple(sorted(READER_FEATURES))
    require_readable(Protocol(3, 7, known, (*known, "fromTheFuture")), "t")
    assert (
        TableBuilder().create(Protocol(1, 7, None, ("unknownWriterFeature",))).log().current_snapshot.exists
    )


def test_b059_a_property_whose_feature_is_not_listed_is_noticed():
    """The table was written by a faulty writer; readers must not honour the property."""
    metadata = Metadata("m", configuration={"delta.enableDeletionVectors": "true"})
    assert mismatched_features(Protocol(1, 2), metadata) == ["deletionVectors"]
    assert mismatched_features(Protocol(3, 7, ("deletionVectors",)), metadata) == []
    mapped = Metadata("m", configuration={"delta.columnMapping.mode": "name"})
    assert mismatched_features(Protocol(2, 5), mapped) == []
