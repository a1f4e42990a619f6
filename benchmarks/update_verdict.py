"""What the measured times mean: how many times as fast as each peer, and whether a promise is kept."""

from __future__ import annotations

OURS, OURS_WITH_FRAME = "freezeframe", "freezeframe_frame"
FRAMES = ("gluestick", "pandas_csv")


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
            if (ours := OURS_WITH_FRAME if peer in FRAMES else OURS) in times and not peer.startswith(OURS)
        }
    return {name: peers for name, peers in found.items() if peers}


def claims(cases: dict) -> dict[str, bool]:
    """Promise by promise, whether it is kept; what was not measured is not there."""
    judged = {
        "10k <- 1k: at most 0.10 s": _at_most(median(cases, "10k_1k", OURS), 0.10),
        "10k <- 1k, frame: at most 0.13 s": _at_most(median(cases, "10k_1k", OURS_WITH_FRAME), 0.13),
        "10k <- 1k: eight times as fast as the faster MERGE": _faster(cases, "10k_1k", "merge", 8),
        "1M <- 100k: eight times as fast as MERGE with vectors": _faster(
            cases, "1m_100k", "merge_with_vectors", 8
        ),
        "1M <- 100k: at most 1.4 times delta-rs's time": _faster(cases, "1m_100k", "delta_rs", 1 / 1.4),
        "1M <- 100k: ahead of DuckLake": _faster(cases, "1m_100k", "ducklake", 1),
        "1M <- 100k, pandas in: ahead of DuckLake": _at_most(
            median(cases, "1m_100k", "freezeframe_pandas"), median(cases, "1m_100k", "ducklake_pandas")
        ),
        "1M <- 100k, pandas in: ahead of delta-rs": _at_most(
            median(cases, "1m_100k", "freezeframe_pandas"), median(cases, "1m_100k", "delta_rs_pandas")
        ),
        **{
            f"{name}, frame: 2.5 times as fast as gluestick": _faster(cases, case, "gluestick", 2.5)
            for case, name in (("1m_100k", "1M <- 100k"), ("5m_500k", "5M <- 500k"))
        },
        **{
            f"{name}, frame of Arrow types: four times as fast as gluestick": _at_most(
                median(cases, case, "freezeframe_arrow_frame"), median(cases, case, "gluestick"), 1 / 4
            )
            for case, name in (("1m_100k", "1M <- 100k"), ("5m_500k", "5M <- 500k"))
        },
        "5M <- 500k: level with delta-rs": _faster(cases, "5m_500k", "delta_rs", 1),
        "5M <- 500k: ahead of DuckLake": _faster(cases, "5m_500k", "ducklake", 1),
        "5M <- 500k: at most 1 GB more memory than delta-rs, Spark's server included": _at_most(
            _value(cases, "5m_500k", OURS, "peak_pss_mib"),
            _more(_value(cases, "5m_500k", "delta_rs", "peak_pss_mib"), 1000 / 1.048576),
        ),
        "100 of 100k changed: under 1 MB newly referenced": _at_most(_most_referenced(cases), 10**6),
        "100 of 100k changed: at most 60 % of the full case": _at_most(
            median(cases, "1m_100k_100_changed", OURS), median(cases, "1m_100k", OURS), 0.6
        ),
        "update 1,000: at most 1.5 times update 10": _at_most(
            cases.get("1000_updates", {}).get("last_to_number_10"), 1.5
        ),
    }
    return {promise: kept for promise, kept in judged.items() if kept is not None}


def _more(found: float | None, by: float) -> float | None:
    return None if found is None else found + by


def median(cases: dict, case: str, peer: str) -> float | None:
    """The median seconds of a peer; None if it did not come to an end."""
    return _value(cases, case, peer, "median_seconds")


def _value(cases: dict, case: str, peer: str, name: str) -> float | None:
    return cases.get(case, {}).get("peers", {}).get(peer, {}).get(name)


def _most_referenced(cases: dict) -> int | None:
    commits = _value(cases, "1m_100k_100_changed", OURS, "commits")
    return max(commit["newly_referenced_bytes"] for commit in commits) if commits else None


def _faster(cases: dict, case: str, peer: str, times: float) -> bool | None:
    theirs = median(cases, case, peer)
    if peer == "merge":
        vectors = median(cases, case, "merge_with_vectors")
        theirs = min(filter(None, (theirs, vectors)), default=None)
    return _at_most(median(cases, case, OURS_WITH_FRAME if peer in FRAMES else OURS), theirs, 1 / times)


def _at_most(found: float | None, limit: float | None, share: float = 1) -> bool | None:
    return None if found is None or limit is None else found <= limit * share
