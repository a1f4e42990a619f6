// What somebody should look at in an environment: its tenants are looked at a page after the other.
import { infiniteQueryOptions, useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { address, get } from "@/api/client";
import type { EnvironmentOverview, TenantWithFindings } from "@/api/types";
import type { TenantChip } from "@/navigation/search";

const PAGE = 200;
/** So many tenants are looked at without being asked to. */
const PAGES_MAX = 10;
const FRESH_MS = 60_000;

function findingsQuery(environment: string, days: number) {
  return infiniteQueryOptions({
    queryKey: ["findings", environment, days],
    queryFn: ({ signal, pageParam }) =>
      get<EnvironmentOverview>(
        address`/environments/${environment}/overview`,
        { limit: PAGE, days, cursor: pageParam },
        signal,
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    staleTime: FRESH_MS,
    refetchInterval: FRESH_MS,
  });
}

export function useFindings(environment: string, days: number, isWanted = true) {
  const found = useInfiniteQuery({ ...findingsQuery(environment, days), enabled: isWanted });
  const { hasNextPage, isFetchingNextPage, isError, fetchNextPage } = found;
  const pages = found.data?.pages.length ?? 0;
  const goesOn = isWanted && hasNextPage && pages < PAGES_MAX;
  useEffect(() => {
    if (goesOn && !isFetchingNextPage && !isError) void fetchNextPage();
  }, [goesOn, isFetchingNextPage, isError, fetchNextPage]);
  return { ...found, goesOn };
}

const HOLDS: Record<TenantChip, (one: TenantWithFindings) => boolean> = {
  failed: (one) => ["failed", "timed_out", "dead"].includes(one.last_job?.status ?? ""),
  stale: (one) => one.stale !== null,
  changed: (one) => (one.days.at(-1) ?? 0) > 0,
};

/** The tenants of which a chip holds; all of them without one. */
export function useChosenTenants(environment: string, only: TenantChip | undefined) {
  const found = useFindings(environment, 1, only !== undefined);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = found;
  // Here all tenants are meant, however many there are.
  useEffect(() => {
    if (only && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [only, hasNextPage, isFetchingNextPage, fetchNextPage]);
  const ids = useMemo(() => {
    const tenants = found.data?.pages.flatMap((page) => page.tenants) ?? [];
    return new Set(only ? tenants.filter(HOLDS[only]).map((one) => one.tenant) : []);
  }, [found.data, only]);
  return useMemo(
    () => ({
      all: only === undefined,
      has: (id: string) => ids.has(id),
      isLooking: only !== undefined && (found.isPending || hasNextPage),
      error: only && found.error,
      retry: () => void found.refetch(),
    }),
    [only, ids, found.isPending, hasNextPage, found.error, found.refetch],
  );
}
