// How many rows a tenant had after each version: counted back from now by what each version changed (pure).
import type { StreamOverview, TenantVersion } from "@/api/types";

export interface GrowthPoint {
  version: number;
  at: number;
  rows: number;
  changed: number;
}

export interface Period {
  from: number;
  to: number;
}

/** The points, the oldest first; `versions` are the newest first, without a gap to now. */
export function growthOf(
  versions: readonly TenantVersion[],
  streams: readonly StreamOverview[],
): GrowthPoint[] {
  let rows = streams.reduce((sum, stream) => sum + stream.rows, 0);
  const points = versions.map((version): GrowthPoint => {
    const counts = Object.values(version.streams);
    const point = {
      version: version.version,
      at: Date.parse(version.timestamp),
      rows,
      changed: changedIn(version),
    };
    rows -= counts.reduce((sum, one) => sum + one.inserted - one.deleted, 0);
    return point;
  });
  return points.reverse();
}

export function changedIn(version: TenantVersion): number {
  return Object.values(version.streams).reduce(
    (sum, one) => sum + one.inserted + one.updated + one.deleted,
    0,
  );
}

/** The most rows of one stream that any of the versions changed: what all bars are drawn to. */
export function largestChange(versions: readonly TenantVersion[]): number {
  let most = 1;
  for (const version of versions)
    for (const one of Object.values(version.streams))
      most = Math.max(most, one.inserted + one.updated + one.deleted);
  return most;
}

export function within(versions: readonly TenantVersion[], period: Period | null): readonly TenantVersion[] {
  if (period === null) return versions;
  return versions.filter((one) => {
    const at = Date.parse(one.timestamp);
    return period.from <= at && at <= period.to;
  });
}
