// What somebody should look at in an environment; each line leads to its cause.
import { Button, SegmentedControl, Text } from "@mantine/core";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { ColumnChanges, EnvironmentOverview, JobGroup, TenantWithFindings } from "@/api/types";
import { useSealing } from "@/files/useSealing";
import { countsText, failedOf, tenantsText } from "@/jobs/groups";
import { JobStatus } from "@/jobs/jobColumns";
import { OVERVIEW_DAYS, type PanelSearch } from "@/navigation/search";
import { bytesText, countText, durationText } from "@/parts/formats";
import { LateSkeleton, ProblemNote } from "@/parts/states";
import { Moment } from "@/parts/values";
import { useEnvironment, useMay } from "@/session/session";
import { Growth } from "./Growth";
import { useFindings } from "./useFindings";
import "./overview.css";

const DAYS = 7;
const SHOWN_MAX = 50;

interface Line {
  id: string;
  tenant: string;
  search: PanelSearch;
  /** What the line is about, beside the tenant. */
  subject?: ReactNode;
  text: ReactNode;
  at?: string | undefined;
}

interface Part {
  title: string;
  none: string;
  lines: Line[];
  /** Files that can be sealed from here. */
  sealable?: readonly { tenant: string; path: string }[];
}

export function OverviewPage() {
  const environment = useEnvironment();
  const search = useSearch({ from: "/signed-in/overview" });
  const navigate = useNavigate({ from: "/overview" });
  const may = useMay();
  const days = search.days ?? DAYS;
  const found = useFindings(environment, days);
  const pages = found.data?.pages;
  const tenants = useMemo(() => pages?.flatMap((page) => page.tenants) ?? [], [pages]);
  const parts = useMemo(() => partsOf(pages ?? [], tenants, days), [pages, tenants, days]);
  const shown = may("jobs:read") ? parts : parts.slice(1);
  const groups = pages?.[0]?.job_groups ?? [];
  return (
    <div className="page">
      <div className="page-head">
        <h1>Overview</h1>
        <SegmentedControl
          size="xs"
          aria-label="Period"
          data={OVERVIEW_DAYS.map((value) => ({
            value: String(value),
            label: value === 1 ? "24 h" : `${value} days`,
          }))}
          value={String(days)}
          onChange={(value) => void navigate({ search: (before) => ({ ...before, days: Number(value) }) })}
        />
      </div>
      {found.isPending ? (
        <LateSkeleton lines={12} />
      ) : found.isLoadingError ? (
        <ProblemNote error={found.error} onRetry={() => found.refetch()} />
      ) : (
        <div className="overview-parts">
          {groups.length > 0 && <Groups groups={groups} environment={environment} />}
          {shown.map((part) => (
            <Section key={part.title} part={part} environment={environment} />
          ))}
          <Growth tenants={tenants} environment={environment} days={days} />
        </div>
      )}
      {pages && (
        <Text size="xs" c="dimmed" role="status">
          {countText(tenants.length)} {tenants.length === 1 ? "tenant" : "tenants"} examined,{" "}
          {bytesText(tenants.reduce((sum, one) => sum + one.size_bytes, 0))}
          {found.goesOn && " · examining more"}
          {found.hasNextPage && !found.goesOn && (
            <Button
              ml="xs"
              size="compact-xs"
              loading={found.isFetchingNextPage}
              onClick={() => found.fetchNextPage()}
            >
              Examine more tenants
            </Button>
          )}
        </Text>
      )}
    </div>
  );
}

/** A script's jobs for many tenants in one line, with those that failed. */
function Groups({ groups, environment }: { groups: readonly JobGroup[]; environment: string }) {
  const title = "Runs for many tenants";
  return (
    <section className="overview-part" aria-label={title}>
      <h2>
        {title} <span className="overview-count number">{countText(groups.length)}</span>
      </h2>
      <ul>
        {groups.map((group) => (
          <li key={group.group}>
            <Link
              to="/jobs"
              search={{ env: environment, group: group.group }}
              className="overview-line overview-group"
              title={group.group}
            >
              <strong>{group.script}</strong>
              <span className="overview-subject">
                {group.dry_run && "dry run "}for {tenantsText(group)}
              </span>
              <span className={`overview-text ${failedOf(group) > 0 ? "job-reason" : ""}`}>
                {countsText(group)}
              </span>
              <Moment at={group.created} className="dim overview-at" />
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Section({ part, environment }: { part: Part; environment: string }) {
  const count = part.lines.length;
  const may = useMay();
  const sealing = useSealing();
  return (
    <section className="overview-part" aria-label={part.title}>
      <h2>
        {part.title} {count > 0 && <span className="overview-count number">{countText(count)}</span>}
        {part.sealable && count > 0 && may("snapshots:write") && (
          <Button
            size="compact-xs"
            ml="auto"
            loading={sealing.isPending}
            onClick={() =>
              sealing.mutate(
                (part.sealable ?? []).map(({ tenant, path }) => ({ place: { environment, tenant }, path })),
              )
            }
          >
            Seal all
          </Button>
        )}
      </h2>
      {count === 0 && <p className="dim">{part.none}</p>}
      <ul>
        {part.lines.slice(0, SHOWN_MAX).map((line) => (
          <li key={line.id}>
            <Link
              to="/tenants/$tenant"
              params={{ tenant: line.tenant }}
              search={{ env: environment, ...line.search }}
              className="overview-line"
            >
              <strong>{line.tenant}</strong>
              {line.subject && <span className="overview-subject">{line.subject}</span>}
              <span className="overview-text">{line.text}</span>
              {line.at && <Moment at={line.at} className="dim overview-at" />}
            </Link>
          </li>
        ))}
      </ul>
      {count > SHOWN_MAX && <p className="dim">and {countText(count - SHOWN_MAX)} more</p>}
    </section>
  );
}

function partsOf(
  pages: readonly EnvironmentOverview[],
  tenants: readonly TenantWithFindings[],
  days: number,
): Part[] {
  const period = days === 1 ? "24 hours" : `${days} days`;
  const change = (version: number, stream: string): PanelSearch =>
    version > 0
      ? { panel: "history", before: version - 1, after: version, diff: `stream ${stream}` }
      : { panel: "history" };
  return [
    {
      title: "Failed jobs",
      none: `No ${(pages[0]?.job_groups.length ?? 0) > 0 ? "other " : ""}job failed in the last ${period}.`,
      lines: pages
        .flatMap((page) => page.failed_jobs)
        .map((job) => ({
          id: `${job.tenant} ${job.job_id}`,
          tenant: job.tenant,
          search: { panel: "jobs", job: job.job_id },
          subject: <JobStatus status={job.status} />,
          text: job.error || job.job_id,
          at: job.finished,
        })),
    },
    {
      title: "Stale tenants",
      none: "Every tenant was synced within its usual time.",
      lines: tenants.flatMap(({ tenant, stale }) =>
        stale
          ? {
              id: tenant,
              tenant,
              search: { panel: "jobs" as const },
              text: `usually synced every ${durationText(stale.usual_seconds)}, last`,
              at: stale.last_sync,
            }
          : [],
      ),
    },
    {
      title: "Unusual deletions and growth",
      none: `Nothing unusual in the last ${period}.`,
      lines: newestFirst(
        tenants.flatMap(({ tenant, unusual }) =>
          unusual.map((one) => ({
            id: `${tenant} ${one.stream} ${one.version} ${one.kind}`,
            tenant,
            search: change(one.version, one.stream),
            subject: one.stream,
            text: (
              <span className={one.kind === "deletion" ? "mark-gone" : "mark-new"}>
                {one.kind === "deletion" ? "-" : "+"}
                {countText(one.rows)} rows ({countText(one.rows_before)} before)
              </span>
            ),
            at: one.timestamp,
          })),
        ),
      ),
    },
    {
      title: "Schema drift",
      none: `No columns changed in the last ${period}.`,
      lines: newestFirst(
        tenants.flatMap(({ tenant, drift }) =>
          drift.map((one) => ({
            id: `${tenant} ${one.stream} ${one.version}`,
            tenant,
            search: change(one.version, one.stream),
            subject: one.stream,
            text: columnsText(one.columns),
            at: one.timestamp,
          })),
        ),
      ),
    },
    {
      title: "Unsealed configurations",
      sealable: tenants.flatMap(({ tenant, unsealed }) => unsealed.map((path) => ({ tenant, path }))),
      none: "All configurations are sealed.",
      lines: tenants.flatMap(({ tenant, unsealed }) =>
        unsealed.map((path) => ({
          id: `${tenant} ${path}`,
          tenant,
          search: { panel: "snapshots" as const, file: path },
          text: path,
        })),
      ),
    },
    ...unreadable(pages),
  ];
}

function unreadable(pages: readonly EnvironmentOverview[]): Part[] {
  const lines = pages.flatMap((page) =>
    page.unreadable.map(({ tenant, code }) => ({
      id: tenant,
      tenant,
      search: { panel: "history" as const },
      text: `cannot be read (${code})`,
    })),
  );
  return lines.length > 0 ? [{ title: "Damaged tenants", none: "", lines }] : [];
}

function newestFirst(lines: Line[]): Line[] {
  return lines.sort((one, other) => (other.at ?? "").localeCompare(one.at ?? ""));
}

function columnsText({ added, dropped, retyped }: ColumnChanges): string {
  return [
    ...Object.entries(added).map(([name, kind]) => `+ ${name} (${kind})`),
    ...Object.keys(dropped).map((name) => `- ${name}`),
    ...Object.entries(retyped).map(([name, [before, after]]) => `${name}: ${before} → ${after}`),
  ].join(", ");
}
