// All that an address says besides its path. Whatever is not in here is not kept when a page is left.
import type { JobStatus } from "@/api/types";

const JOB_STATUSES: readonly JobStatus[] = [
  "queued",
  "running",
  "succeeded",
  "held",
  "failed",
  "cancelled",
  "timed_out",
  "dead",
];
export const PANEL_TABS = ["snapshots", "history", "jobs", "settings"] as const;
export type PanelTab = (typeof PANEL_TABS)[number];
export const STREAM_VIEWS = ["preview", "schema", "versions", "delivery"] as const;
export type StreamView = (typeof STREAM_VIEWS)[number];

export const TENANT_CHIPS = ["failed", "stale", "changed"] as const;
export type TenantChip = (typeof TENANT_CHIPS)[number];

const TENANT_SORTS = ["tenant", "streams", "rows", "bytes", "job", "changed", "days"] as const;
const ITEM_SORTS = ["name", "rows", "size", "changed"] as const;

interface TenantsSearch {
  env?: string | undefined;
  q?: string | undefined;
  sort?: string | undefined;
  /** Only tenants of which that holds. */
  only?: TenantChip | undefined;
}

export interface PanelSearch extends TenantsSearch {
  panel?: PanelTab | undefined;
  /** The folder, file or stream that is open. */
  path?: string | undefined;
  file?: string | undefined;
  stream?: string | undefined;
  view?: StreamView | undefined;
  where?: string[] | undefined;
  /** The stream's columns that are shown; without it all. */
  columns?: string[] | undefined;
  /** The key of the row that is open, as the service takes it. */
  row?: string | undefined;
  /** By which column a stream's rows are sorted: `Amount`, `-Amount`. */
  by?: string | undefined;
  /** A file of rows as text, where it would be a table. */
  as?: "text" | undefined;
  /** The time of which versions are listed, as two moments in milliseconds: `1700000000000-1700003600000`. */
  find?: string | undefined;
  order?: string | undefined;
  /** The version as of which everything is shown. */
  v?: number | undefined;
  before?: number | undefined;
  after?: number | undefined;
  diff?: string | undefined;
  job?: string | undefined;
  show?: "notebook" | undefined;
}

export const PERIODS = ["today", "night", "week"] as const;
export type Period = (typeof PERIODS)[number];

export interface JobsSearch {
  env?: string | undefined;
  /** When they were submitted. */
  within?: Period | undefined;
  status?: JobStatus | undefined;
  tenant?: string | undefined;
  /** The group whose jobs are listed. */
  group?: string | undefined;
}

type Raw = Record<string, unknown>;

export function tenantsSearch(raw: Raw): TenantsSearch {
  return compact({
    env: text(raw.env),
    q: text(raw.q),
    sort: sort(raw.sort, TENANT_SORTS),
    only: TENANT_CHIPS.find((chip) => chip === raw.only),
  });
}

export function panelSearch(raw: Raw): PanelSearch {
  return compact({
    ...tenantsSearch(raw),
    panel: PANEL_TABS.find((tab) => tab === raw.panel),
    path: text(raw.path),
    file: text(raw.file),
    stream: text(raw.stream),
    view: STREAM_VIEWS.find((view) => view === raw.view),
    where: texts(raw.where),
    columns: texts(raw.columns),
    by: text(raw.by),
    row: text(raw.row),
    as: raw.as === "text" ? "text" : undefined,
    find: text(raw.find),
    order: sort(raw.order, ITEM_SORTS),
    v: version(raw.v),
    before: version(raw.before),
    after: version(raw.after),
    diff: text(raw.diff),
    job: text(raw.job),
    show: raw.show === "notebook" ? "notebook" : undefined,
  });
}

export const OVERVIEW_DAYS = [1, 7, 30] as const;

export function overviewSearch(raw: Raw): { env?: string | undefined; days?: number | undefined } {
  return compact({ env: text(raw.env), days: OVERVIEW_DAYS.find((days) => days === raw.days) });
}

export function jobsSearch(raw: Raw): JobsSearch {
  return compact({
    env: text(raw.env),
    within: PERIODS.find((period) => period === raw.within),
    status: JOB_STATUSES.find((status) => status === raw.status),
    tenant: text(raw.tenant),
    group: text(raw.group),
  });
}

interface CompareSearch {
  env?: string | undefined;
  left?: string | undefined;
  right?: string | undefined;
  /** The environment of the right tenant, where it is another one. */
  other?: string | undefined;
}

export function compareSearch(raw: Raw): CompareSearch {
  return compact({
    env: text(raw.env),
    left: text(raw.left),
    right: text(raw.right),
    other: text(raw.other),
  });
}

interface AuditSearch {
  env?: string | undefined;
  tenant?: string | undefined;
  action?: string | undefined;
  subject?: string | undefined;
  /** The first and the last day, in UTC. */
  since?: string | undefined;
  until?: string | undefined;
}

export function auditSearch(raw: Raw): AuditSearch {
  return compact({
    env: text(raw.env),
    tenant: text(raw.tenant),
    action: text(raw.action),
    subject: text(raw.subject),
    since: day(raw.since),
    until: day(raw.until),
  });
}

/** A day as `2026-11-20`; undefined where it is none. */
function day(value: unknown): string | undefined {
  const isDay = typeof value === "string" && /^\d{4}-\d{2}-\d{2}$/.test(value);
  return isDay && !Number.isNaN(Date.parse(value)) ? value : undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string"
    ? value || undefined
    : typeof value === "number"
      ? String(value)
      : undefined;
}

/** A column's name, or `-name` for downwards; undefined where there is no such column. */
function sort(value: unknown, columns: readonly string[]): string | undefined {
  return columns.flatMap((column) => [column, `-${column}`]).find((one) => one === value);
}

function texts(value: unknown): string[] | undefined {
  return Array.isArray(value) && value.length > 0 ? value.map(String) : undefined;
}

function version(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function compact<T extends object>(search: T): T {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined)) as T;
}
