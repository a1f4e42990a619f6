// How one can sign in here: with a key always, and with an account of a provider where one is set.
import { queryOptions } from "@tanstack/react-query";
import { address, get } from "@/api/client";
import type { SignInWays } from "@/api/types";

export const waysQuery = queryOptions({
  queryKey: ["ways"],
  queryFn: ({ signal }) => get<SignInWays>(address`/session/ways`, {}, signal),
  staleTime: Number.POSITIVE_INFINITY,
  retry: false,
});

/** Where the browser goes to sign in at the provider; the service itself makes sure that it comes back here. */
export function providerAddress(to?: string): string {
  return `/api/v1/session/provider${to ? `?${new URLSearchParams({ next: to })}` : ""}`;
}
