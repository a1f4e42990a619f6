// What is read of one stream: its rows in the order of a column, and what its columns hold.
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { type ImportOrder, MEDIA_TYPES } from "@/api/changes";
import { call, get } from "@/api/client";
import { type Place, streamAddress, tenantKey } from "@/api/place";
import type { RowsChoice } from "@/api/queries";
import type { ImportPreview, RowHistory, SortedRows, StreamStatistics } from "@/api/types";
import type { Sort } from "@/parts/VirtualGrid";

const ROWS_PAGE = 200;
const ROW_VERSIONS_PAGE = 50;
const FRESH_MS = 5_000;
/** As far down as the service sorts. */
export const SORTED_MAX = 10_000;

/** A row and the versions that touched it; `key` is its key's text (`keyText`). */
export function rowHistoryQuery(place: Place, stream: string, key: string, version?: number) {
  return infiniteQueryOptions({
    queryKey: [...tenantKey(place), "row-history", stream, key, version ?? "now"],
    queryFn: ({ signal, pageParam }) =>
      get<RowHistory>(
        `${streamAddress(place, stream)}/rows/${encodeURIComponent(key)}/history`,
        { until: pageParam ?? version, limit: ROW_VERSIONS_PAGE },
        signal,
      ),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.following,
    staleTime: FRESH_MS,
  });
}

export function sortedRowsQuery(place: Place, stream: string, sort: Sort, choice: RowsChoice) {
  return infiniteQueryOptions({
    queryKey: [
      ...tenantKey(place),
      "rows",
      stream,
      choice.version ?? "now",
      choice.where,
      choice.columns,
      sort,
    ],
    queryFn: ({ signal, pageParam }) =>
      get<SortedRows>(
        `${streamAddress(place, stream)}/sorted-rows`,
        {
          by: sort.column,
          descending: sort.isDown,
          where: choice.where,
          columns: choice.columns,
          version: choice.version,
          limit: ROWS_PAGE,
          offset: pageParam,
        },
        signal,
      ),
    initialPageParam: 0,
    getNextPageParam: (_, pages) => {
      const loaded = pages.reduce((count, page) => count + page.rows.length, 0);
      return loaded < Math.min(pages[0]?.total ?? 0, SORTED_MAX) ? loaded : undefined;
    },
    placeholderData: keepPreviousData,
    staleTime: choice.version === undefined ? FRESH_MS : Number.POSITIVE_INFINITY,
  });
}

export function statisticsQuery(place: Place, stream: string, version?: number, columns?: readonly string[]) {
  return queryOptions({
    queryKey: [...tenantKey(place), "statistics", stream, version ?? "now", columns ?? "all"],
    queryFn: ({ signal }) =>
      get<StreamStatistics>(`${streamAddress(place, stream)}/statistics`, { version, columns }, signal),
    staleTime: version === undefined ? FRESH_MS : Number.POSITIVE_INFINITY,
  });
}

/** What an import would do. Of a long file only the beginning is sent; nothing is kept, so no key is needed. */
export function previewImport(
  place: Place,
  stream: string,
  content: Blob,
  order: ImportOrder & { isBeginning: boolean },
  signal: AbortSignal,
): Promise<ImportPreview> {
  return call("POST", `${streamAddress(place, stream)}/import-preview`, {
    query: { key: order.key, mode: order.mode, beginning: order.isBeginning },
    content,
    headers: { "Content-Type": MEDIA_TYPES[order.kind] },
    signal,
    isUnkeyed: true,
  });
}
