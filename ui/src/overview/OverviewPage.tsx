// What somebody should look at in an environment; each line leads to its cause, and what is quiet is one line.
import { Button, SegmentedControl, Text } from "@mantine/core";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import type { ColumnChanges, EnvironmentOverview, JobGroup, TenantWithFindings } from "@/api/types";
import { useSealing } from "@/files/useSealing";
import { countsText, failedOf, tenantsText } from "@/jobs/groups";
import { PageHead } from "@/navigation/PageHead";
import { OVERVIEW_DAYS, type PanelSearch } from "@/navigation/search";
import { bytesText, counted, countText, durationText } from "@/parts/formats";
import { LateSkeleton, ProblemNote } from "@/parts/states";
import { Moment } from "@/parts/values";
import { useEnvironment, useMay } from "@/session/session";
import { FailedJobs } from "./FailedJobs";
import { Growth, grown } from "./Growth";
import { useFindings } from "./useFindings";
import "./overview.css";

const DAYS = 7;
const SHOWN_MAX = 50;
const NAMED_MAX = 3;

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
  /** By which rule a line is in the list. */
  rule: string;
  lines: Line[];
}

export function OverviewPage() {
  const environment = useEnvironment();
  const search = useSearch({ from: "/signed-in/overview" });
  const navigate = useNavigate({ from: "/overview" });
  const may = useMay();
  const days = search.days ?? DAYS;
  const { query: found, entries: pages, more, goesOn } = useFindings(environment, days);
  const tenants = useMemo(() => pages.flatMap((page) => page.tenants), [pages]);
  const parts = useMemo(() => partsOf(pages, tenants), [pages, tenants]);
  const failed = may("jobs:read") ? pages.flatMap((page) => page.failed_jobs) : [];
  const groups = pages[0]?.job_groups ?? [];
  const unsealed = tenants.flatMap(({ tenant, unsealed: paths }) => paths.map((path) => ({ tenant, path })));
  const quiet = [
    ...(may("jobs:read") && failed.length === 0 ? ["no failed job"] : []),
    ...parts.filter(({ lines }) => lines.length === 0).map(({ title, rule }) => `no ${title} (${rule})`),
    ...(unsealed.length === 0 ? ["no unsealed configuration"] : []),
  ];
  return (
    <div className="page">
      <PageHead title="Overview">
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
      </PageHead>
      {found.isPending ? (
        <LateSkeleton lines={12} />
      ) : found.isLoadingError ? (
        <ProblemNote error={found.error} onRetry={() => found.refetch()} />
      ) : (
        <div className="overview-parts">
          {failed.length > 0 && <FailedJobs jobs={failed} environment={environment} />}
          {groups.length > 0 && <Groups groups={groups} environment={environment} />}
          {parts.map(
            (part) =>
              part.lines.length > 0 && <Section key={part.title} part={part} environment={environment} />,
          )}
          {unsealed.length > 0 && <Unsealed files={unsealed} environment={environment} />}
          {grown(tenants, days).length > 0 && (
            <Growth tenants={tenants} environment={environment} days={days} />
          )}
        </div>
      )}
      {found.data && (
        <Text size="xs" c="dimmed" role="status">
          {quiet.length > 0 && `Quiet in ${days === 1 ? "24 hours" : `${days} days`}: ${quiet.join(", ")}. `}
          {counted(tenants.length, "tenant")} examined,{" "}
          {bytesText(tenants.reduce((sum, one) => sum + one.size_bytes, 0))}
          {goesOn && " · examining more"}
          {found.hasNextPage && !goesOn && (
            <Button ml="xs" size="compact-xs" loading={found.isFetchingNextPage} onClick={more}>
              Examine more tenants
            </Button>
          )}
        </Text>
      )}
    </div>
  );
}

/** A script's jobs for many tenants in one line. */
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
  const { lines } = part;
  const title = part.title.charAt(0).toUpperCase() + part.title.slice(1);
  return (
    <section className="overview-part" aria-label={title}>
      <h2>
        {title} <span className="overview-count number">{countText(lines.length)}</span>
        <span className="overview-rule">{part.rule}</span>
      </h2>
      <ul>
        {lines.slice(0, SHOWN_MAX).map((line) => (
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
      {lines.length > SHOWN_MAX && <p className="dim">and {countText(lines.length - SHOWN_MAX)} more</p>}
    </section>
  );
}

interface UnsealedProps {
  files: readonly { tenant: string; path: string }[];
  environment: string;
}

/** Configurations that lie in the store as they are: how many, the first ones, and all sealed at once. */
function Unsealed({ files, environment }: UnsealedProps) {
  const may = useMay();
  const sealing = useSealing();
  const places = files.map(({ tenant, path }) => ({ place: { environment, tenant }, path }));
  return (
    <section className="overview-part" aria-label="Unsealed configurations">
      <h2>
        Unsealed configurations <span className="overview-count number">{countText(files.length)}</span>
        {may("snapshots:write") && (
          <Button
            size="compact-xs"
            ml="auto"
            loading={sealing.isPending}
            onClick={() => sealing.mutate(places)}
          >
            Seal all
          </Button>
        )}
      </h2>
      <p>
        {files.slice(0, NAMED_MAX).map(({ tenant, path }, at) => (
          <span key={`${tenant} ${path}`}>
            {at > 0 && ", "}
            <Link
              className="text-link"
              to="/tenants/$tenant"
              params={{ tenant }}
              search={{ env: environment, panel: "snapshots", file: path }}
            >
              {tenant}: {path}
            </Link>
          </span>
        ))}
        {files.length > NAMED_MAX && ` and ${countText(files.length - NAMED_MAX)} more`}
      </p>
    </section>
  );
}

function partsOf(pages: readonly EnvironmentOverview[], tenants: readonly TenantWithFindings[]): Part[] {
  const change = (version: number, stream: string): PanelSearch =>
    version > 0
      ? { panel: "history", before: version - 1, after: version, diff: `stream ${stream}` }
      : { panel: "history" };
  return [
    {
      title: "damaged tenants",
      rule: "their logs cannot be read",
      lines: pages.flatMap((page) =>
        page.unreadable.map(({ tenant, code }) => ({
          id: tenant,
          tenant,
          search: { panel: "history" as const },
          text: code,
        })),
      ),
    },
    {
      title: "unusual changes",
      rule: "a quarter of the rows deleted, or 100 and more that double them; thrice what other versions did",
      lines: tenants
        .flatMap(({ tenant, unusual }) => unusual.map((one) => ({ tenant, ...one })))
        .sort((one, other) => other.rows / other.rows_before - one.rows / one.rows_before)
        .map(({ tenant, ...one }) => ({
          id: `${tenant} ${one.stream} ${one.version} ${one.kind}`,
          tenant,
          search: change(one.version, one.stream),
          subject: one.stream,
          text: (
            <span className={one.kind === "deletion" ? "mark-gone" : "mark-new"}>
              {one.kind === "deletion" ? "-" : "+"}
              {countText(one.rows)} of {counted(one.rows_before, "row")} (
              {countText(Math.round((100 * one.rows) / one.rows_before))} %)
            </span>
          ),
          at: one.timestamp,
        })),
    },
    {
      title: "stale tenants",
      rule: "no sync for twice the usual time, and for longer than nine of ten pauses",
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
      title: "schema drift",
      rule: "columns that came, went or changed their type",
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
  ];
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
