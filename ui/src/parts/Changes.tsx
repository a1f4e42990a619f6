// Counts of rows as "+12 ~3 -0", told in words to who does not see signs.
import { VisuallyHidden } from "@mantine/core";
import { countText } from "./formats";

interface RowCounts {
  inserted: number;
  updated: number;
  deleted: number;
}

export function Changes({ counts }: { counts: RowCounts }) {
  return (
    <span className="number">
      <span aria-hidden>
        <span className={counts.inserted ? "mark-new" : "dim"}>+{countText(counts.inserted)}</span>{" "}
        <span className={counts.updated ? "mark-changed" : "dim"}>~{countText(counts.updated)}</span>{" "}
        <span className={counts.deleted ? "mark-gone" : "dim"}>-{countText(counts.deleted)}</span>
      </span>
      <VisuallyHidden>
        {counts.inserted} new, {counts.updated} updated, {counts.deleted} deleted
      </VisuallyHidden>
    </span>
  );
}
