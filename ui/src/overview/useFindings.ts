// What somebody should look at in an environment: its tenants are looked at a page after the other.
import { useMemo, useState } from "react";
import { address } from "@/api/client";
import { listQuery, useList } from "@/api/queries";
import type { EnvironmentOverview, TenantWithFindings } from "@/api/types";
import type { TenantChip } from "@/navigation/search";

const PAGE = 200;
/** So many pages are looked at without being asked to. */
const PAGES_MAX = 10;
const FRESH_MS = 60_000;

function findingsQuery(environment: string, days: number) {
  const url = address`/environments/${environment}/overview`;
  return listQuery<EnvironmentOverview>(
    ["findings", environment, days],
    url,
    { limit: PAGE, days },
    { staleTime: FRESH_MS },
  );
}

export function useFindings(environment: string, days: number) {
  const [seen, setSeen] = useState(0);
  const isWhole = seen < PAGES_MAX;
  const found = useList(findingsQuery(environment, days), (page) => [page], {
    isWhole,
    refetchInterval: FRESH_MS,
  });
  const pages = found.entries.length;
  if (seen !== pages) setSeen(pages);
  return { ...found, goesOn: isWhole && found.query.hasNextPage };
}

const HOLDS: Record<TenantChip, (one: TenantWithFindings) => boolean> = {
  failed: (one) => ["failed", "timed_out", "dead"].includes(one.last_job?.status ?? ""),
  stale: (one) => one.stale !== null,
  changed: (one) => (one.days.at(-1) ?? 0) > 0,
};

/** The tenants of which a chip holds; all of them without one. */
export function useChosenTenants(environment: string, only: TenantChip | undefined) {
  const isWanted = only !== undefined;
  const { query: found, entries } = useList(findingsQuery(environment, 1), (page) => page.tenants, {
    isWhole: isWanted,
    enabled: isWanted,
    refetchInterval: FRESH_MS,
  });
  const { hasNextPage } = found;
  const ids = useMemo(
    () => new Set(only ? entries.filter(HOLDS[only]).map((one) => one.tenant) : []),
    [entries, only],
  );
  return useMemo(
    () => ({
      all: only === undefined,
      has: (id: string) => ids.has(id),
      isLooking: isWanted && (found.isPending || hasNextPage),
      error: only && found.error,
      retry: () => void found.refetch(),
    }),
    [only, ids, isWanted, found.isPending, hasNextPage, found.error, found.refetch],
  );
}
