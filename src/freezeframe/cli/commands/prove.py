"""``freezeframe prove``: every promise, shown on the user's own storage."""

from __future__ import annotations

import secrets
import signal
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from freezeframe.cli.options import Json
from freezeframe.cli.output import FAILED, Output
from freezeframe.clock import moment, now_ms, rfc3339
from freezeframe.errors import StorageUnsuitable, TryAgain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from freezeframe.proof import ProofResult


_SEED_BITS = 32
_MINUTE = 60
_UNTRIED = "not tried"


def prove(
    storage: Annotated[
        str | None,
        typer.Option(metavar="URI", help="A directory or s3://bucket/prefix (default: the settings' store)."),
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0, help="Minutes to run; each proof has at least one round.")
    ] = 0,
    seed: Annotated[int | None, typer.Option(help="Repeat the choices of an earlier run.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Run only this proof. May be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Test the product's promises in a new folder of a storage, which is deleted at the end.

    Processes race and are killed, calls fail, files are damaged. The exit code is 1 if a promise was broken,
    or if the storage cannot be written, so that none could be tried.
    """
    from freezeframe.proof import ProofResult
    from freezeframe.proof.suite import PROMISES, select_proofs
    from freezeframe.proof.suite import prove as proofs
    from freezeframe.proof.task import scratch
    from freezeframe.settings import load_settings

    names = select_proofs(only or [])
    root = load_settings().root if storage is None else storage
    number = secrets.randbits(_SEED_BITS) if seed is None else seed
    results = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the folder is deleted then as well
    try:
        with scratch(root) as place:
            for result in proofs(place, names, number, minutes * _MINUTE, _be_silent if as_json else _tell):
                results.append(result)
                if not as_json:
                    sys.stderr.write(f"{_line(result)}\n")
                    sys.stderr.flush()
    except StorageUnsuitable as error:
        # A bucket is put to the test when it is opened: that is the first proof, and it has failed.
        results.append(
            ProofResult("atomic-create", PROMISES["atomic-create"], {"buckets": 1}, (str(error),), 0.0)
        )
    except (TryAgain, OSError) as error:  # nothing can be written there: the table says so, then the error
        _print(Output(as_json=as_json), _untried(root, number, names, error))
        raise
    report = _report(root, number, results)
    _print(Output(as_json=as_json), report)
    if report["verdict"] == "broken":
        raise typer.Exit(FAILED)


def _report(root: str, seed: int, results: list[ProofResult]) -> dict[str, Any]:
    verdict = "kept" if all(result.is_kept for result in results) else "broken"
    return _document(root, seed, verdict, [result.to_json() for result in results])


def _untried(root: str, seed: int, names: Iterable[str], error: Exception) -> dict[str, Any]:
    """Return the report on a storage that takes no file."""
    from freezeframe.proof import ProofResult
    from freezeframe.proof.suite import PROMISES

    results = (ProofResult(name, PROMISES[name], {}, (str(error),), 0.0) for name in names)
    return _document(root, seed, _UNTRIED, [{**result.to_json(), "verdict": _UNTRIED} for result in results])


def _document(root: str, seed: int, verdict: str, proofs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "storage": root,
        "seed": seed,
        "finished": rfc3339(moment(now_ms())),
        "proofs": proofs,
    }


def _print(output: Output, report: Mapping[str, Any]) -> None:
    if output.as_json:
        output.record(report)
        return
    rows = [
        {
            "proof": item["name"],
            "": "BROKEN" if item["verdict"] == "broken" else item["verdict"],
            "promise": item["promise"],
        }
        for item in report["proofs"]
    ]
    output.table(f"Promises on {report['storage']}", rows)
    output.line(f"Verdict: {report['verdict']}. Repeat with --seed {report['seed']}.")


def _line(result: ProofResult) -> str:
    verdict = "kept" if result.is_kept else "BROKEN"
    head = f"{result.name}: {verdict} ({_counts_text(result.counts)}; {result.seconds:.1f} s)"
    return "\n".join([head, *(f"  {seen}" for seen in result.violations)])


def _counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items())


def _be_silent(_name: str, _counts: Mapping[str, int]) -> None:
    """Tell nothing: standard output is one JSON document at the end."""


def _tell(name: str, counts: Mapping[str, int]) -> None:
    """Print the progress of a long proof."""
    sys.stderr.write(f"{name}: so far {_counts_text(counts) or 'nothing counted'}\n")
    sys.stderr.flush()
