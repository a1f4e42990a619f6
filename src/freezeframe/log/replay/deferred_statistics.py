"""Statistics that stay in a checkpoint until they are asked for: most of its bytes, seldom needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freezeframe.log.primitives.arrow_numbers import Bools, to_arrow_flags


@dataclass(frozen=True, slots=True)
class DeferredStatistics:
    """The ``stats`` of some of a checkpoint's files.

    ``read`` returns the texts of all of them, and reads them once; ``chosen`` flags those that are meant.
    """

    read: Callable[[], pa.ChunkedArray]
    chosen: Bools

    def __len__(self) -> int:
        return int(self.chosen.sum())

    def select(self, wanted: Bools) -> DeferredStatistics:
        """Those of the files that are flagged; one flag for each file that was meant."""
        chosen = self.chosen.copy()
        chosen[np.flatnonzero(self.chosen)] = wanted
        return DeferredStatistics(self.read, chosen)

    def texts(self) -> pa.ChunkedArray:
        """One text or null for each file, in the order of the checkpoint.

        Raises:
            CorruptLog: ``CHECKPOINT_DAMAGED``, naming the file: it is damaged, or has been deleted.
        """
        texts = self.read()
        return texts if self.chosen.all() else pc.filter(texts, to_arrow_flags(self.chosen))
