"""Puts every promise to the test on a storage of the user's choice: ``freezeframe prove``."""

from freezeframe.proof.place import Place, scratch
from freezeframe.proof.suite import PROOFS, ProofResult, prove

__all__ = ["PROOFS", "Place", "ProofResult", "prove", "scratch"]
