// What is read of each of two tenants.
import { queryOptions } from "@tanstack/react-query";
import { readFile } from "@/api/changes";
import { get } from "@/api/client";
import { type Place, tenantAddress, tenantKey } from "@/api/place";
import type { FileEntry, FilePage } from "@/api/types";

const FRESH_MS = 5_000;
const FILES_PAGE = 1000;
/** So many files of a tenant are compared. */
export const FILES_MAX = 10_000;

export function allFilesQuery(place: Place) {
  return queryOptions({
    queryKey: [...tenantKey(place), "all-files"],
    queryFn: async ({ signal }) => {
      const found: FileEntry[] = [];
      let cursor: string | null = null;
      do {
        const query = { recursive: true, limit: FILES_PAGE, cursor };
        const page: FilePage = await get(`${tenantAddress(place)}/files`, query, signal);
        found.push(...page.files);
        cursor = page.next_cursor;
      } while (cursor !== null && found.length < FILES_MAX);
      return { files: found, isWhole: cursor === null };
    },
    staleTime: FRESH_MS,
  });
}

/** The texts of a file of both; null where one of them is no text. */
export function textsQuery(left: Place, right: Place, path: string) {
  return queryOptions({
    queryKey: [...tenantKey(left), "beside", ...tenantKey(right), path],
    queryFn: async () => {
      const [one, other] = await Promise.all([readFile(left, path), readFile(right, path)]);
      return one && other ? { left: one.text, right: other.text } : null;
    },
    gcTime: 0,
  });
}
