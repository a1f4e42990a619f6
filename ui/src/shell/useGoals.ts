// What the palette finds: pages, tenants, streams, files, jobs, and rows by their key.
//
// Rows are looked for in the tenant that is named or open, and without one in all of the environment.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { get } from "@/api/client";
import { type Place, tenantAddress, tenantKey } from "@/api/place";
import { allJobsQuery, overviewQuery, tenantsQuery } from "@/api/queries";
import type { FilePage } from "@/api/types";
import { keyText } from "@/history/row-keys";
import type { PanelSearch } from "@/navigation/search";
import { useMay } from "@/session/session";
import { conditionText } from "@/streams/conditions";
import { type FoundRow, type Search, useFoundRows } from "./useFoundRows";

const EACH_MAX = 8;
const FILES_MAX = 1000;
const PAGES = [
  { to: "/overview", label: "Overview", scope: "snapshots:read" },
  { to: "/tenants", label: "Tenants", scope: "tenants:read" },
  { to: "/jobs", label: "Jobs", scope: "jobs:read" },
  { to: "/schedules", label: "Schedules", scope: "jobs:read" },
  { to: "/keys", label: "Keys", scope: "admin" },
  { to: "/proof", label: "Proof", scope: "admin" },
  { to: "/audit", label: "Audit", scope: "admin" },
] as const;

export interface Goal {
  id: string;
  kind: "page" | "tenant" | "stream" | "file" | "job" | "row";
  label: string;
  open: () => void;
}

export function useGoals(environment: string, text: string): { goals: Goal[]; search: Search } {
  const may = useMay();
  const navigate = useNavigate();
  const { tenant: open } = useParams({ strict: false });
  const slash = text.indexOf("/");
  const tenants = useInfiniteQuery(tenantsQuery(environment));
  const ids = tenants.data?.pages.flatMap((page) => page.tenants) ?? [];
  // `acme/Invoice` is of acme; without a tenant's id before a slash all is of the one that is open.
  const named = slash < 0 ? undefined : ids.find((id) => id === text.slice(0, slash));
  const part = named === undefined ? text : text.slice(slash + 1);
  const of = named ?? open;
  const place = { environment, tenant: of ?? "" };
  const overview = useQuery({ ...overviewQuery(place), enabled: of !== undefined });
  const streams = overview.data?.streams ?? [];
  const files = useFiles(place, of !== undefined && part !== "");
  const canSearch = may("snapshots:read") && (of !== undefined || may("tenants:read"));
  const search = useFoundRows(environment, of, canSearch ? part.trim() : "");
  const jobs = useInfiniteQuery({
    ...allJobsQuery(environment, { jobId: part, tenant: named }),
    enabled: part !== "" && may("jobs:read"),
  });

  function goal(kind: Goal["kind"], tenant: string, name: string, search: PanelSearch): Goal {
    return {
      id: `${kind} ${tenant} ${name}`,
      kind,
      label: name ? `${tenant} / ${name}` : tenant,
      open: () =>
        void navigate({
          to: "/tenants/$tenant",
          params: { tenant },
          search: { env: environment, panel: "snapshots", ...search },
        }),
    };
  }

  const goals: Goal[] = (jobs.data?.pages[0]?.jobs ?? [])
    .slice(0, EACH_MAX)
    .map((job) => goal("job", job.tenant, job.job_id, { panel: "jobs", job: job.job_id }));
  if (of !== undefined && (named !== undefined || part !== "")) {
    for (const { stream } of streams.filter((one) => contains(one.stream, part)).slice(0, EACH_MAX))
      goals.push(goal("stream", of, stream, { stream }));
    for (const path of files.filter((one) => part !== "" && contains(one, part)).slice(0, EACH_MAX))
      goals.push(goal("file", of, path, { file: path }));
  }
  const rows = search.rows.map((row, at) => ({
    row,
    ...goal("row", row.tenant, rowLabel(row), rowPlace(row)),
    id: `row ${at}`,
  }));
  // A key is what was meant; a text may be in many rows.
  goals.push(...rows.filter(({ row }) => row.column in row.key));
  if (named === undefined) {
    for (const id of ids.filter((one) => contains(one, text)).slice(0, EACH_MAX))
      goals.push(goal("tenant", id, "", {}));
    for (const page of PAGES.filter((one) => may(one.scope) && contains(one.label, text)))
      goals.push({
        id: `page ${page.to}`,
        kind: "page",
        label: page.label,
        open: () => void navigate({ to: page.to, search: { env: environment } as never }),
      });
  }
  goals.push(...rows.filter(({ row }) => !(row.column in row.key)));
  return { goals, search };
}

/** The paths of a tenant's files, of the first 1,000. */
function useFiles(place: Place, isWanted: boolean): readonly string[] {
  const { data } = useQuery({
    queryKey: [...tenantKey(place), "paths"],
    queryFn: ({ signal }) =>
      get<FilePage>(`${tenantAddress(place)}/files`, { recursive: true, limit: FILES_MAX }, signal),
    enabled: isWanted,
    staleTime: 30_000,
  });
  return data?.files.map((file) => file.path) ?? [];
}

function keyOf(row: FoundRow): string {
  return keyText(row.key, Object.keys(row.key));
}

/** The row by its key, and where the text is in another column that column and its value. */
function rowLabel(row: FoundRow): string {
  const isKeyed = Object.keys(row.key).length > 0;
  const name = isKeyed ? `${row.stream} / ${keyOf(row)}` : row.stream;
  return row.column in row.key ? name : `${name}: ${row.column} ${row.value}`;
}

/** The row's sheet; of a stream without a key the rows with that value. */
function rowPlace(row: FoundRow): PanelSearch {
  const { stream } = row;
  if (Object.keys(row.key).length > 0) return { stream, row: keyOf(row) };
  return { stream, where: [conditionText(row.column, "=", row.value)] };
}

function contains(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase());
}
