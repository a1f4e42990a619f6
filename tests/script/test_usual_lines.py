"""Usual lines of transformation scripts give on our frames what they give on gluestick's of the same file."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from tests.text_types import TEXT_TYPES, text_type

import freezeframe.gluestick as gs
import gluestick
from freezeframe.script import get_snapshot, update_snapshot

ORDERS = """Number,Region,Price,Discount,Ordered,Shipped,Pieces,Paid,Remark,Phone,Key
1,north,19.90,0.1,2026-03-01,2026-03-02T10:00:00Z,4,True,gift,+4930123,007
2,south,5.00,,2026-03-15,2026-03-16T11:30:00Z,,False,,+4940456,008
3,north,120.50,0.25,2026-04-02,,12,True,"urgent, call",,009
"""

IDS = ["Phone", "Key"]

LINES = {
    "a sum": lambda d: float(d.Price.sum()),
    "a mean": lambda d: d.Pieces.mean(),
    "sums of groups": lambda d: d.groupby("Region")["Price"].sum().to_dict(),
    "several aggregates": lambda d: d.groupby("Region").agg({"Price": "max", "Pieces": "sum"}).to_dict(),
    "a product": lambda d: (d.Price * d.Pieces.fillna(1)).round(2).tolist(),
    "a share": lambda d: (d.Price / d.Price.sum()).round(3).tolist(),
    "sorted": lambda d: d.sort_values("Price", ascending=False)["Number"].tolist(),
    "largest": lambda d: d.nlargest(2, "Price")["Number"].tolist(),
    "a window of days": lambda d: d[(d.Ordered >= "2026-03-10") & (d.Ordered < "2026-05")]["Number"].tolist(),
    "months": lambda d: d.Ordered.str[:7].value_counts().to_dict(),
    "dates": lambda d: pd.to_datetime(d.Ordered).dt.strftime("%d.%m.%y").tolist(),
    "times": lambda d: pd.to_datetime(d.Shipped).dt.hour.fillna(-1).tolist(),
    "text of times": lambda d: d.Shipped.fillna("").str.split("T").str[0].tolist(),
    "a choice": lambda d: np.where(d.Pieces > 10, "bulk", "single").tolist(),
    "choices": lambda d: np.select([d.Price < 10, d.Price < 100], ["s", "m"], "l").tolist(),
    "truth": lambda d: [bool(value) for value in d.Paid],
    "a mask": lambda d: d.loc[d.Paid, "Number"].tolist(),
    "no mask": lambda d: d[~d.Paid]["Number"].tolist(),
    "filled with text": lambda d: d.fillna("").to_dict("records"),
    "filled by columns": lambda d: d.fillna({"Pieces": 0, "Remark": "-"})[["Remark"]].to_numpy().tolist(),
    "as integers": lambda d: d.Pieces.fillna(0).astype(int).tolist(),
    "as text": lambda d: d.Number.astype(str).str.zfill(5).tolist(),
    "None for missing": lambda d: json.dumps(d.replace({np.nan: None}).to_dict("records")),
    "JSON": lambda d: d.to_json(orient="records"),
    "isnan": lambda d: [math.isnan(value) for value in d.Discount],
    "unlike itself": lambda d: [value for value in d.Remark if value == value],  # noqa: PLR0124 - a script's line
    "missing": lambda d: d.isna().sum().to_dict(),
    "upper": lambda d: d.Region.str.upper().tolist(),
    "contains": lambda d: d[d.Remark.str.contains("call", na=False)]["Number"].tolist(),
    "replaced": lambda d: d.Region.replace({"north": "N"}).map({"N": 1, "south": 2}).tolist(),
    "rows": lambda d: [f"{row.Region}:{row.Price}:{row.Pieces}" for row in d.itertuples()],
    "apply": lambda d: d.apply(lambda row: f"{row['Number']}/{row['Pieces']}", axis=1).tolist(),
    "kinds of columns": lambda d: d.dtypes.astype(str).to_dict(),
    "numbers": lambda d: d.select_dtypes("number").columns.tolist(),
    "a merge": lambda d: d.merge(
        pd.DataFrame({"Region": ["north"], "Rep": ["Ann"]}), how="left"
    ).Rep.tolist(),
    "a pivot": lambda d: d.pivot_table(index="Region", values="Price", aggfunc="sum").to_dict(),
    "CSV": lambda d: d.to_csv(index=False),
    "a concat": lambda d: pd.concat([d, d]).drop_duplicates("Number").Price.tolist(),
    "a new column": lambda d: d.assign(Total=d.Price * (1 - d.Discount.fillna(0))).Total.round(3).tolist(),
    "quantiles": lambda d: pd.cut(d.Price, [0, 10, 50, 500], labels=False).tolist(),
}


@pytest.fixture(scope="module", params=TEXT_TYPES)
def frames(request, tmp_path_factory):
    """gluestick's frame, and ours as read, as an update returns it and as it is kept."""
    folder = tmp_path_factory.mktemp("script") / "sync-output"
    folder.mkdir()
    (folder / "Order-20260501T000000.csv").write_text(ORDERS)
    snapshots = folder.parent / "snapshots"
    with text_type(request.param):
        theirs = gluestick.read_csv_folder(str(folder))["Order"]
        read = gs.read_csv_folder(str(folder))["Order"]
        updated = update_snapshot(snapshots, "Order", ["Number"], read)[list(read)]
        yield theirs, {"read": read, "updated": updated, "kept": get_snapshot(snapshots, "Order")[list(read)]}


@pytest.mark.filterwarnings("ignore:.*is not supported as a fill value")  # of pandas 3, for both frames
@pytest.mark.filterwarnings(
    "ignore:Dtype inference on a pandas object:FutureWarning"
)  # of pandas 2.2, likewise
@pytest.mark.parametrize("line", LINES)
def test_a_usual_line_gives_what_it_gives_on_gluesticks_frame(frames, line):
    """The same values, of the same types, also where pandas' own type for text is on."""
    theirs, ours = frames
    expected = repr(LINES[line](theirs.drop(columns=IDS)))
    assert dict.fromkeys(ours, expected) == {
        name: repr(LINES[line](one.drop(columns=IDS))) for name, one in ours.items()
    }


def test_ids_keep_their_zeros(frames):
    """What pandas would change is text: the two columns of the file that differ."""
    theirs, ours = frames
    assert [4930123, 7] == theirs.loc[0, IDS].tolist()
    assert [["+4930123", "007"]] * 3 == [our.loc[0, IDS].tolist() for our in ours.values()]
