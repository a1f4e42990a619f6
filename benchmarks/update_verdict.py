"""What the measured times mean: how many times as fast as each peer, and whether a promise is kept."""

from __future__ import annotations

from collections.abc import Iterator

from update_peers import FRAME_PEERS

OURS, OURS_WITH_FRAME = "freezeframe", "freezeframe_frame"


def ratios(cases: dict) -> dict[str, dict[str, float]]:
    """By case and peer: the peer's median time divided by ours (above 1: ours is faster)."""
    found = {}
    for name, case in cases.items():
        times = {
            peer: seconds
            for peer in case.get("peers", {})
            if (seconds := median(cases, name, peer)) is not None
        }
        found[name] = {
            peer: round(seconds / times[ours], 2)
            for peer, seconds in times.items()
            if (ours := OURS_WITH_FRAME if peer in FRAME_PEERS else OURS) in times
            and not peer.startswith(OURS)
            and day_of(cases, name, peer) == day_of(cases, name, ours)
        }
    return {name: peers for name, peers in found.items() if peers}


def items_of(cases: dict) -> Iterator[dict]:
    """What was measured: each case that is a series, and each peer of the others."""
    for case in cases.values():
        yield from case["peers"].values() if "peers" in case else [case]


def marks(cases: dict) -> dict[str, str]:
    """The mark of each day on which something was measured; the newest one has none."""
    days = sorted({item["day"] for item in items_of(cases)}, reverse=True)
    return dict(zip(days, ("", *(f" {digit}" for digit in "¹²³⁴⁵⁶⁷⁸⁹")), strict=False))


def claims(cases: dict) -> dict[str, bool]:
    """Promise by promise, whether it was kept on the newest day; what was not measured then is not there."""
    newest = next(iter(marks(cases)))
    cases = {
        name: {"peers": {peer: item for peer, item in case["peers"].items() if item["day"] == newest}}
        if "peers" in case
        else case
        for name, case in cases.items()
        if "peers" in case or case["day"] == newest
    }

    def seconds(case: str, *peers: str) -> float | None:
        return min(filter(None, (median(cases, case, peer) for peer in peers)), default=None)

    def memory(peer: str) -> float | None:
        return _value(cases, "5m_500k", peer, "peak_pss_mib")

    small, large, huge, few = "10k_1k", "1m_100k", "5m_500k", "1m_100k_100_changed"
    commits = _value(cases, few, OURS, "commits") or []
    of_delta_rs = memory("delta_rs")
    # Each with what was found, its limit (a number, or what another peer took), and the share of that.
    judged = {
        "10k <- 1k: at most 0.10 s": (seconds(small, OURS), 0.10, 1),
        "10k <- 1k, frame: at most 0.13 s": (seconds(small, OURS_WITH_FRAME), 0.13, 1),
        "10k <- 1k: eight times as fast as the faster MERGE": (
            seconds(small, OURS), seconds(small, "merge", "merge_with_vectors"), 1 / 8,
        ),
        "1M <- 100k: eight times as fast as MERGE with vectors": (
            seconds(large, OURS), seconds(large, "merge_with_vectors"), 1 / 8,
        ),
        "1M <- 100k: at most 1.4 times delta-rs's time": (
            seconds(large, OURS), seconds(large, "delta_rs"), 1.4,
        ),
        "1M <- 100k: ahead of DuckLake": (seconds(large, OURS), seconds(large, "ducklake"), 1),
        **{
            f"1M <- 100k, pandas in: ahead of {name}": (
                seconds(large, f"{OURS}_pandas"), seconds(large, f"{peer}_pandas"), 1,
            )
            for name, peer in (("DuckLake", "ducklake"), ("delta-rs", "delta_rs"))
        },
        **{
            f"{size}, frame{kind}: {claim}": (seconds(case, ours), seconds(case, peer), share)
            for kind, claim, ours, peer, share in (
                ("", "2.5 times as fast as gluestick", OURS_WITH_FRAME, "gluestick", 1 / 2.5),
                (
                    " of Arrow types", "four times as fast as gluestick",
                    "freezeframe_arrow_frame", "gluestick", 1 / 4,
                ),
                ("", "ahead of DuckLake", OURS_WITH_FRAME, "ducklake_frame", 1),
            )
            for size, case in (("1M <- 100k", large), ("5M <- 500k", huge))
        },
        "5M <- 500k: level with delta-rs": (seconds(huge, OURS), seconds(huge, "delta_rs"), 1),
        "5M <- 500k: ahead of DuckLake": (seconds(huge, OURS), seconds(huge, "ducklake"), 1),
        "5M <- 500k: at most 1 GB more memory than delta-rs, Spark's server included": (
            memory(OURS), of_delta_rs and of_delta_rs + 1000 / 1.048576, 1,
        ),
        "100 of 100k changed: under 1 MB newly referenced": (
            max((commit["newly_referenced_bytes"] for commit in commits), default=None), 10**6, 1,
        ),
        "100 of 100k changed: at most 60 % of the full case": (seconds(few, OURS), seconds(large, OURS), 0.6),
        "update 1,000: at most 1.5 times update 10": (
            cases.get("1000_updates", {}).get("last_to_number_10"), 1.5, 1,
        ),
    }  # fmt: skip
    return {
        promise: found <= limit * share
        for promise, (found, limit, share) in judged.items()
        if found is not None and limit is not None
    }


def median(cases: dict, case: str, peer: str) -> float | None:
    """The median seconds of a peer; None if it did not come to an end."""
    return _value(cases, case, peer, "median_seconds")


def day_of(cases: dict, case: str, peer: str) -> str:
    """The day on which a peer was measured."""
    return _value(cases, case, peer, "day")


def _value(cases: dict, case: str, peer: str, name: str) -> float | None:
    return cases.get(case, {}).get("peers", {}).get(peer, {}).get(name)
