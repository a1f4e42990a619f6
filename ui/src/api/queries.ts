// What is read from the service, under which key it is kept, and for how long it counts as fresh.
//
// A past version never changes, so it is never asked for twice.
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { address, get } from "./client";
import { notebookAddress, type Place, streamAddress, tenantAddress, tenantKey } from "./place";
import { loadSummaries, loadSummary } from "./summaries";
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
  Who,
} from "./types";

const FRESH_MS = 5_000;
const TENANTS_PAGE = 1000;
const FILES_PAGE = 1000;
// What fits on a screen comes first and soon.
const FILES_FIRST_PAGE = 100;
const DIFFERENCE_PAGE = 200;
const VERSIONS_PAGE = 100;

export const whoQuery = queryOptions({
  queryKey: ["who"],
  queryFn: ({ signal }) => get<Who>(address`/session`, {}, signal),
  staleTime: 60_000,
  retry: false,
});

export const environmentsQuery = queryOptions({
  queryKey: ["environments"],
  queryFn: async ({ signal }) =>
    (await get<{ environments: string[] }>(address`/environments`, {}, signal)).environments,
  staleTime: 30_000,
});

export function tenantsQuery(environment: string) {
  return infiniteQueryOptions({
    queryKey: ["tenants", environment],
    queryFn: ({ signal, pageParam }) =>
      get<TenantPage>(
        address`/environments/${environment}/tenants`,
        { limit: TENANTS_PAGE, cursor: pageParam },
        signal,
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    staleTime: FRESH_MS,
  });
}

export function overviewQuery(place: Place, version?: number) {
  return queryOptions({
    queryKey: [...tenantKey(place), "overview", version ?? "now"],
    queryFn: ({ signal }) => get<Overview>(`${tenantAddress(place)}/overview`, { version }, signal),
    staleTime: version === undefined ? FRESH_MS : Number.POSITIVE_INFINITY,
  });
}

/** What the list of tenants shows of one; null where it is gone. */
export function summaryQuery(place: Place) {
  return queryOptions({
    queryKey: [...tenantKey(place), "summary"],
    queryFn: () => loadSummary(place.environment, place.tenant),
    staleTime: FRESH_MS,
  });
}

/** The same of all tenants, where the list is sorted by it. */
export function summariesQuery(environment: string, tenants: readonly string[]) {
  return queryOptions({
    queryKey: ["summaries", environment, tenants.length],
    queryFn: ({ signal }) => loadSummaries(environment, tenants, signal),
    placeholderData: keepPreviousData,
    staleTime: FRESH_MS,
  });
}

export function folderQuery(place: Place, folder: string, version?: number) {
  return infiniteQueryOptions({
    queryKey: [...tenantKey(place), "folder", folder, version ?? "now"],
    queryFn: ({ signal, pageParam }) =>
      get<FilePage>(
        `${tenantAddress(place)}/files`,
        {
          folder,
          version,
          limit: pageParam === null ? FILES_FIRST_PAGE : FILES_PAGE,
          cursor: pageParam,
        },
        signal,
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    staleTime: version === undefined ? FRESH_MS : Number.POSITIVE_INFINITY,
  });
}

export function fileHistoryQuery(place: Place, path: string) {
  return queryOptions({
    queryKey: [...tenantKey(place), "file-history", path],
    queryFn: ({ signal }) => get<FileHistory>(`${tenantAddress(place)}/file-history`, { path }, signal),
    staleTime: FRESH_MS,
  });
}

export function streamQuery(place: Place, stream: string) {
  return queryOptions({
    queryKey: [...tenantKey(place), "stream", stream],
    queryFn: ({ signal }) => get<StreamDetail>(streamAddress(place, stream), {}, signal),
    staleTime: FRESH_MS,
  });
}

export interface HistoryChoice {
  stream?: string | undefined;
  path?: string | undefined;
  jobId?: string | undefined;
}

export function historyQuery(place: Place, choice: HistoryChoice = {}) {
  return infiniteQueryOptions({
    queryKey: [...tenantKey(place), "history", choice],
    queryFn: ({ signal, pageParam }) =>
      get<HistoryPage>(
        `${tenantAddress(place)}/history`,
        {
          limit: VERSIONS_PAGE,
          cursor: pageParam,
          stream: choice.stream,
          path: choice.path,
          job_id: choice.jobId,
        },
        signal,
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    staleTime: FRESH_MS,
  });
}

export function differenceQuery(place: Place, before: number, after: number) {
  return queryOptions({
    queryKey: [...tenantKey(place), "diff", before, after],
    queryFn: ({ signal }) =>
      get<Difference>(`${tenantAddress(place)}/diff`, { before, after, texts: true }, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function rowDifferenceQuery(place: Place, stream: string, before: number, after: number) {
  return infiniteQueryOptions({
    queryKey: [...tenantKey(place), "row-diff", stream, before, after],
    queryFn: ({ signal, pageParam }) =>
      get<RowDifference>(
        `${streamAddress(place, stream)}/diff`,
        { before, after, limit: DIFFERENCE_PAGE, cursor: pageParam },
        signal,
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function jobsQuery(place: Place) {
  return infiniteQueryOptions({
    queryKey: [...tenantKey(place), "jobs"],
    queryFn: ({ signal, pageParam }) =>
      get<JobPage>(`${tenantAddress(place)}/jobs`, { limit: 100, cursor: pageParam }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    staleTime: 2_000,
  });
}

export interface AllJobsChoice {
  status?: JobStatus | undefined;
  tenant?: string | undefined;
  jobId?: string | undefined;
  group?: string | undefined;
}

export function allJobsKey(environment: string): readonly string[] {
  return ["all-jobs", environment];
}

export function allJobsQuery(environment: string, choice: AllJobsChoice = {}) {
  return infiniteQueryOptions({
    queryKey: [...allJobsKey(environment), choice],
    queryFn: ({ signal, pageParam }) =>
      get<JobPage>(
        address`/environments/${environment}/jobs`,
        {
          limit: 100,
          cursor: pageParam,
          status: choice.status,
          tenant: choice.tenant,
          job_id: choice.jobId,
          group: choice.group,
        },
        signal,
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    staleTime: FRESH_MS,
  });
}

export function notebookQuery(place: Place, jobId: string) {
  return queryOptions({
    queryKey: [...tenantKey(place), "notebook", jobId],
    queryFn: ({ signal }) => get<unknown>(notebookAddress(place, jobId), {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function jobQuery(place: Place, jobId: string) {
  return queryOptions({
    queryKey: [...tenantKey(place), "job", jobId],
    queryFn: ({ signal }) =>
      get<Job>(`${tenantAddress(place)}/jobs/${encodeURIComponent(jobId)}`, {}, signal),
    staleTime: 1_000,
  });
}

/** Rows and lines that a dry run would change; they stay as they are. */
export function dryRunChangesQuery(place: Place, jobId: string) {
  return queryOptions({
    queryKey: [...tenantKey(place), "job-changes", jobId],
    queryFn: ({ signal }) =>
      get<DryRunChanges>(`${tenantAddress(place)}/jobs/${encodeURIComponent(jobId)}/changes`, {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
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
  return infiniteQueryOptions({
    queryKey: ["audit", auditAddress(place), choice],
    queryFn: ({ signal, pageParam }) =>
      get<AuditPage>(auditAddress(place), { limit: 100, cursor: pageParam, ...choice }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
    staleTime: 1_000,
  });
}

export const keysQuery = infiniteQueryOptions({
  queryKey: ["keys"],
  queryFn: ({ signal, pageParam }) => get<KeyPage>(address`/keys`, { limit: 100, cursor: pageParam }, signal),
  initialPageParam: null as string | null,
  getNextPageParam: (page) => page.next_cursor,
  staleTime: FRESH_MS,
});

export function policyQuery(place: Place) {
  return queryOptions({
    queryKey: [...tenantKey(place), "policy"],
    queryFn: ({ signal }) => get<Policy>(`${tenantAddress(place)}/policy`, {}, signal),
  });
}

export function tagsQuery(place: Place) {
  return queryOptions({
    queryKey: [...tenantKey(place), "tags"],
    queryFn: async ({ signal }) =>
      (await get<{ tags: Record<string, number> }>(`${tenantAddress(place)}/tags`, {}, signal)).tags,
  });
}

/** Reads all entries of all tenants, so it is asked for by a button. */
export const auditProofQuery = queryOptions({
  queryKey: ["audit-proof"],
  queryFn: ({ signal }) =>
    get<{ is_whole: boolean; broken_at: number | null }>(address`/audit/proof`, {}, signal),
  enabled: false,
  retry: false,
});

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
