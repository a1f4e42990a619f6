// How long the bars of a version's changes are drawn (pure).
import type { TenantVersion } from "@/api/types";

type Counted = TenantVersion["streams"][string];

/** The most rows of one stream that any of the versions changed: what all bars are drawn to. */
export function largestChange(versions: readonly TenantVersion[]): number {
  let most = 1;
  for (const version of versions)
    for (const one of Object.values(version.streams))
      most = Math.max(most, one.inserted + one.updated + one.deleted);
  return most;
}

/**
 * How long the parts of a change's bar are, in percent of the longest bar.
 *
 * By the square root of its rows: beside a first load of a million rows a night's thousand are still seen.
 */
export function barParts(
  { inserted, updated, deleted }: Pick<Counted, "inserted" | "updated" | "deleted">,
  most: number,
): { fate: "new" | "changed" | "gone"; percent: number }[] {
  const rows = inserted + updated + deleted;
  if (rows === 0) return [];
  const length = 100 * Math.sqrt(rows / Math.max(most, rows));
  const parts = [
    { fate: "new" as const, percent: (length * inserted) / rows },
    { fate: "changed" as const, percent: (length * updated) / rows },
    { fate: "gone" as const, percent: (length * deleted) / rows },
  ];
  return parts.filter((part) => part.percent > 0);
}
