// What of a tenant has to be read again when it has changed: all but what is of a past version, which stays.
import type { Query, QueryClient } from "@tanstack/react-query";
import { type Place, tenantKey } from "@/api/place";

/** Reads it again; with `before` only what was answered before that moment, in milliseconds. */
export function refreshTenant(client: QueryClient, place: Place, before?: number): Promise<void> {
  const isOld = ({ state }: Query) =>
    before === undefined || (state.data !== undefined && state.dataUpdatedAt < before);
  return client.invalidateQueries({
    queryKey: tenantKey(place),
    predicate: (query) => isOld(query) && mayChange(query),
  });
}

function mayChange(query: Query): boolean {
  return query.observers.length === 0
    ? query.options.queryFn !== undefined && !isOfThePast(query)
    : query.observers.some((one) => one.options.staleTime !== Number.POSITIVE_INFINITY);
}

function isOfThePast(query: Query): boolean {
  const [, , , what, version] = query.queryKey;
  return what === "diff" || what === "row-diff" || typeof version === "number";
}
