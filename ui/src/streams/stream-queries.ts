// What is read of one stream: its rows in the order of a column, and what its columns hold.
import { queryOptions } from "@tanstack/react-query";
import { type ImportOrder, MEDIA_TYPES } from "@/api/changes";
import { change, get, type Place, streamAddress, tenantKey } from "@/api/client";
import { freshFor, listQuery, oneQuery } from "@/api/queries";
import type { ImportPreview, RowHistory, RowOrigin, Rows, SortedRows, StreamStatistics } from "@/api/types";
import type { Sort } from "@/parts/VirtualGrid";
import { conditionText } from "./conditions";

export const ROWS_PAGE = 200;
const ROW_VERSIONS_PAGE = 50;
/** As far down as the service sorts. */
export const SORTED_MAX = 10_000;
/** As far down as rows are listed; further ones are found by a condition. */
export const LISTED_MAX = 1_000_000;

/** A row and the versions that touched it; `key` is its key's text (`keyText`). */
export function rowHistoryQuery(place: Place, stream: string, key: string, version?: number) {
  const page = { limit: ROW_VERSIONS_PAGE };
  return listQuery<RowHistory>(
    [...tenantKey(place), "row-history", stream, key, version ?? "now"],
    `${streamAddress(place, stream)}/rows/${encodeURIComponent(key)}/history`,
    page,
    { first: { ...page, until: version }, begin: "until" },
  );
}

/** Where each cell of a row comes from. */
export function rowOriginQuery(place: Place, stream: string, key: string, until?: number) {
  return oneQuery<RowOrigin>(
    [...tenantKey(place), "row-origin", stream, key, until ?? "now"],
    `${streamAddress(place, stream)}/rows/${encodeURIComponent(key)}/origin`,
    { until },
  );
}

export interface RowsChoice {
  where: readonly string[];
  columns: readonly string[];
  version?: number | undefined;
  sort?: Sort | undefined;
}

/** Some rows of a list that can be entered anywhere, and how long the list is, as far as that is known. */
interface RowsPart {
  rows: Record<string, unknown>[];
  columns: string[];
  total: number;
  isTotalExact: boolean;
}

/** The rows of a page, the first page being 0: in the order of a column, or of the key. */
export function rowsPageQuery(place: Place, stream: string, choice: RowsChoice, page: number) {
  const { where, columns, version, sort } = choice;
  const query = { where, columns, version, limit: ROWS_PAGE, offset: page * ROWS_PAGE };
  return queryOptions({
    queryKey: [...tenantKey(place), "rows", stream, choice.version ?? "now", where, columns, sort, page],
    queryFn: async ({ signal }): Promise<RowsPart> => {
      const base = streamAddress(place, stream);
      if (sort) {
        const order = { ...query, by: sort.column, descending: sort.isDown };
        return { ...(await get<SortedRows>(`${base}/sorted-rows`, order, signal)), isTotalExact: true };
      }
      const found = await get<Rows>(`${base}/rows`, query, signal);
      return { ...found, isTotalExact: found.is_total_exact };
    },
    staleTime: freshFor(version),
  });
}

/** How many rows under the conditions have a smaller key, and whether the row after them has it. */
export async function placeOfKey(
  place: Place,
  stream: string,
  choice: RowsChoice,
  key: { name: string; text: string },
): Promise<{ index: number; isThere: boolean }> {
  const address = `${streamAddress(place, stream)}/rows`;
  const query = { version: choice.version, columns: [key.name], limit: 1 };
  const before = await get<Rows>(address, {
    ...query,
    where: [...choice.where, conditionText(key.name, "<", key.text)],
    count: true,
  });
  const own = [...choice.where, conditionText(key.name, "=", key.text)];
  const same = await get<Rows>(address, { ...query, where: own });
  return { index: before.total, isThere: same.rows.length > 0 };
}

interface StatisticsChoice {
  version?: number | undefined;
  columns?: readonly string[];
  /** Only what the log knows, at once. */
  isLogOnly?: boolean;
}

export function statisticsQuery(place: Place, stream: string, choice: StatisticsChoice) {
  const { version, columns, isLogOnly = false } = choice;
  const key = [...tenantKey(place), "statistics", stream, version ?? "now", columns ?? "all", isLogOnly];
  const query = { version, columns, read: !isLogOnly };
  const url = `${streamAddress(place, stream)}/statistics`;
  return oneQuery<StreamStatistics>(key, url, query, freshFor(version));
}

/** What an import would do. Of a long file only the beginning is sent; nothing is kept, so no key is needed. */
export function previewImport(
  place: Place,
  stream: string,
  content: Blob,
  order: ImportOrder & { isBeginning: boolean },
  signal: AbortSignal,
): Promise<ImportPreview> {
  return change("POST", `${streamAddress(place, stream)}/import-preview`, "only a check", {
    query: { key: order.key, mode: order.mode, beginning: order.isBeginning },
    content,
    headers: { "Content-Type": MEDIA_TYPES[order.kind] },
    signal,
    isUnkeyed: true,
  });
}
