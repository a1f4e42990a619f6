// Who looks at the console, what they may do, in which environment they look, and how they sign in.
import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { address } from "@/api/client";
import { environmentsQuery, oneQuery, whoQuery } from "@/api/queries";
import type { Scope, SignInWays } from "@/api/types";
import { followed } from "@/parts/page";

const REMEMBERED = "freezeframe.environment";

export function useMay(): (scope: Scope) => boolean {
  const { data } = useQuery(whoQuery);
  return (scope) => data !== undefined && (data.scopes.includes(scope) || data.scopes.includes("admin"));
}

/** The environment of the address, else the one of last time, else `default` or the first that there is. */
export function useEnvironment(): string {
  const search = useSearch({ strict: false }) as { env?: string };
  const { data } = useQuery(environmentsQuery);
  const last = localStorage.getItem(REMEMBERED);
  const known = data ?? [];
  if (search.env) return search.env;
  if (last && known.includes(last)) return last;
  return known.includes("default") || known.length === 0 ? (last ?? "default") : (known[0] as string);
}

export function rememberEnvironment(environment: string): void {
  localStorage.setItem(REMEMBERED, environment);
}

export const { set: setEnded, useValue: useEnded } = followed(false);

export const waysQuery = {
  ...oneQuery<SignInWays>(["ways"], address`/session/ways`, {}, Number.POSITIVE_INFINITY),
  retry: false,
};

/** Where the browser goes to sign in at the provider; the service itself makes sure that it comes back here. */
export function providerAddress(to?: string): string {
  return `/api/v1/session/provider${to ? `?${new URLSearchParams({ next: to })}` : ""}`;
}
