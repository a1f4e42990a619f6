// What the palette finds: pages, tenants, streams, files, jobs, and rows by their key.
//
// Rows are looked for in the streams of one tenant, each by a request of its own: what is found first is shown
// first, and what is typed on ends the requests before.
import { useDebouncedValue } from "@mantine/hooks";
import { useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { get } from "@/api/client";
import { type Place, streamAddress, tenantAddress, tenantKey } from "@/api/place";
import { allJobsQuery, overviewQuery, tenantsQuery } from "@/api/queries";
import type { FilePage, Rows, StreamOverview } from "@/api/types";
import { keyText } from "@/history/row-keys";
import type { PanelSearch } from "@/navigation/search";
import { useMay } from "@/session/session";
import { conditionText } from "@/streams/conditions";

const EACH_MAX = 8;
const FILES_MAX = 1000;
const STREAMS_MAX = 30;
const TYPED_MS = 250;
const PAGES = [
  { to: "/overview", label: "Overview", scope: "snapshots:read" },
  { to: "/tenants", label: "Tenants", scope: "tenants:read" },
  { to: "/jobs", label: "Jobs", scope: "jobs:read" },
  { to: "/schedules", label: "Schedules", scope: "jobs:read" },
  { to: "/keys", label: "Keys", scope: "admin" },
  { to: "/people", label: "People", scope: "admin" },
  { to: "/proof", label: "Proof", scope: "admin" },
  { to: "/audit", label: "Audit", scope: "admin" },
] as const;

export interface Goal {
  id: string;
  kind: "page" | "tenant" | "stream" | "file" | "job" | "row";
  label: string;
  open: () => void;
}

export function useGoals(environment: string, text: string): { goals: Goal[]; isLooking: boolean } {
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
  const rows = useRows(place, of === undefined ? [] : streams, part.trim());
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
    for (const { stream, key } of rows.found)
      goals.push(goal("row", of, `${stream} / ${key}`, { stream, row: key }));
  }
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
  return { goals, isLooking: rows.isLooking };
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

/** Rows whose key is the text, in up to 30 streams with a key of one column. */
function useRows(place: Place, streams: readonly StreamOverview[], text: string) {
  const [typed] = useDebouncedValue(text, TYPED_MS);
  const keyed = typed === "" ? [] : streams.filter((one) => one.key.length === 1).slice(0, STREAMS_MAX);
  const answers = useQueries({
    queries: keyed.map(({ stream, key }) => ({
      queryKey: [...tenantKey(place), "find", stream, typed],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        get<Rows>(
          `${streamAddress(place, stream)}/rows`,
          { where: [conditionText(key[0] ?? "", "=", typed)], columns: key, limit: 1 },
          signal,
        ),
      // A text that no key of the stream can be is refused: it is not there then.
      retry: false,
      staleTime: 5_000,
    })),
  });
  const found = keyed.flatMap(({ stream, key }, at) => {
    const row = answers[at]?.data?.rows[0];
    return row ? [{ stream, key: keyText(row, key) }] : [];
  });
  return { found, isLooking: answers.some((one) => one.isFetching) };
}

function contains(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase());
}
