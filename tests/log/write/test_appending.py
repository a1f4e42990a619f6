"""What a new file of a table says of its rows beyond the columns that come first."""

import json

import pyarrow as pa

from freezeframe.log import DeltaLog, DomainMetadata, Protocol
from freezeframe.log.write.transaction import require_committed

NAMES = [f"c{number}" for number in range(40)]


def test_clustering_columns_have_statistics_wherever_they_are(tmp_path):
    """The protocol's "Clustered Table": writers must collect them; column 32 and others beyond have none."""
    log = DeltaLog.create(str(tmp_path / "t"), pa.schema([(name, pa.int64()) for name in NAMES]))
    transaction = log.start_transaction()
    transaction.set_protocol(
        Protocol(1, 7, None, ("appendOnly", "clustering", "domainMetadata", "invariants"))
    )
    configuration = json.dumps({"clusteringColumns": [["c39"], ["c3"]], "domainName": "delta.clustering"})
    actions = [DomainMetadata("delta.clustering", configuration)]
    require_committed(transaction.commit(actions, operation="CLUSTER BY"))

    log.append(pa.table({name: [7, 9] for name in NAMES}))

    [statistics] = map(json.loads, log.snapshot.files["stats"].to_pylist())
    assert (statistics["minValues"]["c39"], statistics["maxValues"]["c39"]) == (7, 9)
    assert set(statistics["nullCount"]) == {*NAMES[:32], "c39"}
