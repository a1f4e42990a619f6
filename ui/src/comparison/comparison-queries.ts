// What is read of each of two tenants.
import { queryOptions } from "@tanstack/react-query";
import { readFile } from "@/api/changes";
import { type Place, tenantKey } from "@/api/place";

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
