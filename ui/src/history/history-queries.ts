// What is read of a tenant's past besides its versions, and the restoration of single rows.
import { queryOptions } from "@tanstack/react-query";
import { call, get } from "@/api/client";
import { type Place, streamAddress, tenantAddress, tenantKey } from "@/api/place";
import type { Growth, RowRestoration, RowRestorationOrder } from "@/api/types";

const FRESH_MS = 5_000;
const POINTS_MAX = 500;

export function growthQuery(place: Place) {
  return queryOptions({
    queryKey: [...tenantKey(place), "growth"],
    queryFn: async ({ signal }) =>
      (await get<Growth>(`${tenantAddress(place)}/growth`, { limit: POINTS_MAX }, signal)).points,
    staleTime: FRESH_MS,
  });
}

export function restoreRows(
  place: Place,
  stream: string,
  order: RowRestorationOrder,
): Promise<RowRestoration> {
  return call("POST", `${streamAddress(place, stream)}/row-restorations`, { body: order });
}
