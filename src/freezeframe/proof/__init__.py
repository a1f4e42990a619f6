"""Puts every promise to the test on a storage of the user's choice: ``freezeframe prove``."""

from freezeframe.proof.suite import PROOFS, ProofResult, prove
from freezeframe.proof.task import ProofFolder, scratch

__all__ = ["PROOFS", "ProofFolder", "ProofResult", "prove", "scratch"]
