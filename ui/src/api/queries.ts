// What is read from the service, under which key it is kept, and for how long it counts as fresh.
//
// A past version never changes, so it is never asked for twice.
import {
  infiniteQueryOptions,
  keepPreviousData,
  notifyManager,
  type QueryClient,
  queryOptions,
  useInfiniteQuery,
} from "@tanstack/react-query";
import { useCallback, useEffect, useMemo } from "react";
import {
  address,
  type Condition,
  get,
  notebookAddress,
  type Place,
  type Query,
  streamAddress,
  tenantAddress,
  tenantKey,
  unchanged,
} from "./client";
import type {
  AuditPage,
  Difference,
  DryRunChanges,
  FileEntry,
  FileHistory,
  FilePage,
  HistoryPage,
  Job,
  JobPage,
  JobStatus,
  KeyPage,
  Overview,
  Policy,
  RowDifference,
  StreamDetail,
  TenantPage,
  TenantSummaries,
  TenantSummary,
  UnreadableTenant,
  Who,
} from "./types";

const FRESH_MS = 5_000;
const FOR_EVER = Number.POSITIVE_INFINITY;
const TENANTS_PAGE = 1000;
const FILES_PAGE = 1000;
// What fits on a screen comes first and soon.
const FILES_FIRST_PAGE = 100;
const DIFFERENCE_PAGE = 200;
const VERSIONS_PAGE = 100;

/** One answer. */
export function oneQuery<T>(
  queryKey: readonly unknown[],
  url: string,
  query: Query = {},
  staleTime = FRESH_MS,
) {
  return queryOptions({ queryKey, queryFn: ({ signal }) => get<T>(url, query, signal), staleTime });
}

type Paged = { next_cursor: string | null } | { following: number | null };

interface Listing {
  staleTime?: number;
  /** The query of the first page, where it is another one. */
  first?: Query;
  /** How the query names the place where a page begins. */
  begin?: "cursor" | "until";
}

/** A list, page after page by where the service says that the next one begins. */
export function listQuery<Page extends Paged>(
  queryKey: readonly unknown[],
  url: string,
  query: Query = {},
  { staleTime = FRESH_MS, first = query, begin = "cursor" }: Listing = {},
) {
  return infiniteQueryOptions({
    queryKey,
    queryFn: ({ signal, pageParam }) =>
      get<Page>(url, pageParam === null ? first : { ...query, [begin]: pageParam }, signal),
    initialPageParam: null as string | number | null,
    getNextPageParam: (page: Page) => ("following" in page ? page.following : page.next_cursor),
    staleTime,
  });
}

/** The entries of a list's pages so far; `more` reads the next page, and of a whole list all are read at once. */
export function useList<Page extends Paged, Entry>(
  options: ReturnType<typeof listQuery<Page>>,
  entriesOf: (page: Page) => readonly Entry[],
  {
    isWhole = false,
    ...when
  }: { isWhole?: boolean; enabled?: boolean; refetchInterval?: number | false } = {},
) {
  const query = useInfiniteQuery({ ...options, ...when });
  const { data, isError, hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a page's entries are always the same
  const entries = useMemo(() => data?.pages.flatMap(entriesOf) ?? [], [data]);
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  useEffect(() => {
    if (isWhole && !isError) more();
  }, [isWhole, isError, more]);
  return { query, entries, more };
}

/** How long what is of a version counts as fresh: a past one never changes. */
export function freshFor(version: number | undefined): number {
  return version === undefined ? FRESH_MS : FOR_EVER;
}

export const whoQuery = { ...oneQuery<Who>(["who"], address`/session`, {}, 60_000), retry: false };

export const environmentsQuery = queryOptions({
  queryKey: ["environments"],
  queryFn: async ({ signal }) =>
    (await get<{ environments: string[] }>(address`/environments`, {}, signal)).environments,
  staleTime: 30_000,
});

export function tenantsQuery(environment: string) {
  const url = address`/environments/${environment}/tenants`;
  return listQuery<TenantPage>(["tenants", environment], url, { limit: TENANTS_PAGE });
}

export function overviewQuery(place: Place, version?: number) {
  const key = [...tenantKey(place), "overview", version ?? "now"];
  return oneQuery<Overview>(key, `${tenantAddress(place)}/overview`, { version }, freshFor(version));
}

/** The condition that a tenant is still as its panel shows it, whose overview is always read. */
export function shownTenant(client: QueryClient, place: Place): Condition {
  return unchanged(client.getQueryData(overviewQuery(place).queryKey)?.etag);
}

const summaryKey = (place: Place) => [...tenantKey(place), "summary"];

/** What the list of tenants shows of one, or why it cannot be read; null where it is gone. */
export function summaryQuery(place: Place) {
  return queryOptions({
    queryKey: summaryKey(place),
    queryFn: ({ client }) => loadSummary(client, place),
    staleTime: FRESH_MS,
  });
}

/** The same of all tenants, where the list is sorted by it. */
export function summariesQuery(environment: string, tenants: readonly string[]) {
  return queryOptions({
    queryKey: ["summaries", environment, tenants.length],
    queryFn: async ({ signal }) => (await loadSummaries(environment, tenants, signal)).tenants,
    placeholderData: keepPreviousData,
    staleTime: FRESH_MS,
  });
}

export function folderQuery(place: Place, folder: string, version?: number) {
  return listQuery<FilePage>(
    [...tenantKey(place), "folder", folder, version ?? "now"],
    `${tenantAddress(place)}/files`,
    { folder, version, limit: FILES_PAGE },
    { staleTime: freshFor(version), first: { folder, version, limit: FILES_FIRST_PAGE } },
  );
}

export function fileHistoryQuery(place: Place, path: string) {
  const url = `${tenantAddress(place)}/file-history`;
  return oneQuery<FileHistory>([...tenantKey(place), "file-history", path], url, { path });
}

export function streamQuery(place: Place, stream: string) {
  return oneQuery<StreamDetail>([...tenantKey(place), "stream", stream], streamAddress(place, stream));
}

interface HistoryChoice {
  stream?: string | undefined;
  path?: string | undefined;
  jobId?: string | undefined;
}

export function historyQuery(place: Place, choice: HistoryChoice = {}) {
  const { stream, path, jobId: job_id } = choice;
  const query = { limit: VERSIONS_PAGE, stream, path, job_id };
  return listQuery<HistoryPage>(
    [...tenantKey(place), "history", choice],
    `${tenantAddress(place)}/history`,
    query,
  );
}

export function differenceQuery(place: Place, before: number, after: number) {
  const url = `${tenantAddress(place)}/diff`;
  return oneQuery<Difference>([...tenantKey(place), "diff", before, after], url, { before, after }, FOR_EVER);
}

export function rowDifferenceQuery(place: Place, stream: string, before: number, after: number) {
  return listQuery<RowDifference>(
    [...tenantKey(place), "row-diff", stream, before, after],
    `${streamAddress(place, stream)}/diff`,
    { before, after, limit: DIFFERENCE_PAGE },
    { staleTime: FOR_EVER },
  );
}

export function jobsQuery(place: Place) {
  const url = `${tenantAddress(place)}/jobs`;
  return listQuery<JobPage>([...tenantKey(place), "jobs"], url, { limit: 100 }, { staleTime: 2_000 });
}

interface AllJobsChoice {
  status?: JobStatus | undefined;
  tenant?: string | undefined;
  jobId?: string | undefined;
  group?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
}

export function allJobsKey(environment: string): readonly string[] {
  return ["all-jobs", environment];
}

export function allJobsQuery(environment: string, choice: AllJobsChoice = {}) {
  const { jobId: job_id, ...others } = choice;
  return listQuery<JobPage>(
    [...allJobsKey(environment), choice],
    address`/environments/${environment}/jobs`,
    { limit: 100, job_id, ...others },
  );
}

export function notebookQuery(place: Place, jobId: string) {
  const key = [...tenantKey(place), "notebook", jobId];
  return oneQuery<unknown>(key, notebookAddress(place, jobId), {}, FOR_EVER);
}

export function jobQuery(place: Place, jobId: string) {
  const url = `${tenantAddress(place)}/jobs/${encodeURIComponent(jobId)}`;
  return oneQuery<Job>([...tenantKey(place), "job", jobId], url, {}, 1_000);
}

/** Rows and lines that a dry run would change; they stay as they are. */
export function dryRunChangesQuery(place: Place, jobId: string) {
  const url = `${tenantAddress(place)}/jobs/${encodeURIComponent(jobId)}/changes`;
  return oneQuery<DryRunChanges>([...tenantKey(place), "job-changes", jobId], url, {}, FOR_EVER);
}

export interface AuditChoice {
  action?: string | undefined;
  subject?: string | undefined;
  since?: string | undefined;
  until?: string | undefined;
}

/** Of a tenant; null: the service's own, which concerns no tenant. */
export function auditAddress(place: Place | null): string {
  return place ? `${tenantAddress(place)}/audit` : address`/audit`;
}

export function auditQuery(place: Place | null, choice: AuditChoice = {}) {
  const url = auditAddress(place);
  return listQuery<AuditPage>(["audit", url, choice], url, { limit: 100, ...choice }, { staleTime: 1_000 });
}

export const keysQuery = listQuery<KeyPage>(["keys"], address`/keys`, { limit: 100 });

export function policyQuery(place: Place) {
  return oneQuery<Policy>([...tenantKey(place), "policy"], `${tenantAddress(place)}/policy`, {}, 0);
}

type TagsAnswer = { tags: Record<string, number> };

export function tagsQuery(place: Place) {
  return oneQuery<TagsAnswer>([...tenantKey(place), "tags"], `${tenantAddress(place)}/tags`, {}, 0);
}

/** Reads all entries of all tenants, so it is asked for by a button. */
export const auditProofQuery = {
  ...oneQuery<{ is_whole: boolean; broken_at: number | null }>(["audit-proof"], address`/audit/proof`),
  enabled: false,
  retry: false,
};

/** So many files of a tenant or folder are read at most. */
export const ALL_FILES_MAX = 10_000;

export function allFilesQuery(place: Place, folder?: string) {
  return queryOptions({
    queryKey: [...tenantKey(place), "all-files", folder ?? ""],
    queryFn: async ({ signal }) => {
      const found: FileEntry[] = [];
      let cursor: string | null = null;
      do {
        const query = { folder, recursive: true, limit: FILES_PAGE, cursor };
        const page: FilePage = await get(`${tenantAddress(place)}/files`, query, signal);
        found.push(...page.files);
        cursor = page.next_cursor;
      } while (cursor !== null && found.length < ALL_FILES_MAX);
      return { files: found, isWhole: cursor === null };
    },
    staleTime: FRESH_MS,
  });
}

const AT_ONCE_MAX = 100;

type Told = TenantSummary | UnreadableTenant | null;

interface Waiting {
  resolve: (summary: Told) => void;
  reject: (error: unknown) => void;
}

const waiting = new Map<string, Map<string, Waiting[]>>();

/** A tenant's summary. All that is asked for in one turn goes in one request. */
function loadSummary(client: QueryClient, { environment, tenant }: Place): Promise<Told> {
  return new Promise((resolve, reject) => {
    let asked = waiting.get(environment);
    if (!asked) {
      asked = new Map();
      waiting.set(environment, asked);
      setTimeout(() => flush(client, environment), 0);
    }
    asked.set(tenant, [...(asked.get(tenant) ?? []), { resolve, reject }]);
  });
}

async function loadSummaries(
  environment: string,
  tenants: readonly string[],
  signal?: AbortSignal,
): Promise<TenantSummaries> {
  const found: TenantSummaries = { tenants: [], unreadable: [] };
  for (let start = 0; start < tenants.length; start += AT_ONCE_MAX) {
    const tenant = tenants.slice(start, start + AT_ONCE_MAX);
    const url = address`/environments/${environment}/overviews`;
    const page = await get<TenantSummaries>(url, { tenant }, signal);
    found.tenants.push(...page.tenants);
    found.unreadable.push(...page.unreadable);
  }
  return found;
}

async function flush(client: QueryClient, environment: string): Promise<void> {
  const asked = waiting.get(environment) ?? new Map<string, Waiting[]>();
  waiting.delete(environment);
  try {
    const { tenants, unreadable } = await loadSummaries(environment, [...asked.keys()]);
    const byTenant = new Map([...tenants, ...unreadable].map((one) => [one.tenant, one]));
    const of = (tenant: string): Told => byTenant.get(tenant) ?? null;
    // The page draws all answers at once: a drawing for each of many rows is more than React allows in a row.
    notifyManager.batch(() => {
      for (const tenant of asked.keys()) client.setQueryData(summaryKey({ environment, tenant }), of(tenant));
    });
    for (const [tenant, those] of asked) for (const one of those) one.resolve(of(tenant));
  } catch (error) {
    for (const those of asked.values()) for (const one of those) one.reject(error);
  }
}
