// The restoration of single rows.
import { call } from "@/api/client";
import { type Place, streamAddress } from "@/api/place";
import type { RowRestoration, RowRestorationOrder } from "@/api/types";

export function restoreRows(
  place: Place,
  stream: string,
  order: RowRestorationOrder,
): Promise<RowRestoration> {
  return call("POST", `${streamAddress(place, stream)}/row-restorations`, { body: order });
}
