// What the list of tenants shows of one: asked for the rows that are seen, a hundred tenants in one request.
import { address, get } from "./client";
import type { TenantSummary } from "./types";

const AT_ONCE_MAX = 100;

interface Waiting {
  resolve: (summary: TenantSummary | null) => void;
  reject: (error: unknown) => void;
}

const waiting = new Map<string, Map<string, Waiting[]>>();

/** A tenant's summary; null where it is gone. All that is asked for in one turn goes in one request. */
export function loadSummary(environment: string, tenant: string): Promise<TenantSummary | null> {
  return new Promise((resolve, reject) => {
    let asked = waiting.get(environment);
    if (!asked) {
      asked = new Map();
      waiting.set(environment, asked);
      setTimeout(() => flush(environment), 0);
    }
    asked.set(tenant, [...(asked.get(tenant) ?? []), { resolve, reject }]);
  });
}

export async function loadSummaries(
  environment: string,
  tenants: readonly string[],
  signal?: AbortSignal,
): Promise<TenantSummary[]> {
  const found: TenantSummary[] = [];
  for (let start = 0; start < tenants.length; start += AT_ONCE_MAX) {
    const tenant = tenants.slice(start, start + AT_ONCE_MAX);
    const url = address`/environments/${environment}/overviews`;
    found.push(...(await get<{ tenants: TenantSummary[] }>(url, { tenant }, signal)).tenants);
  }
  return found;
}

async function flush(environment: string): Promise<void> {
  const asked = waiting.get(environment) ?? new Map<string, Waiting[]>();
  waiting.delete(environment);
  try {
    const found = await loadSummaries(environment, [...asked.keys()]);
    const byTenant = new Map(found.map((one) => [one.tenant, one]));
    for (const [tenant, those] of asked) for (const one of those) one.resolve(byTenant.get(tenant) ?? null);
  } catch (error) {
    for (const those of asked.values()) for (const one of those) one.reject(error);
  }
}
