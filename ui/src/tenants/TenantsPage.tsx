// The list of tenants. The panel of one of them slides in over it.
import { Button, Group, Select, Text, TextInput } from "@mantine/core";
import { IconPlus, IconSearch } from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useMemo, useState } from "react";
import { cloneTenant, createTenant } from "@/api/changes";
import { summariesQuery, summaryQuery, tenantsQuery, useList } from "@/api/queries";
import type { TenantSummary } from "@/api/types";
import { JobStatus } from "@/jobs/jobColumns";
import { PageHead } from "@/navigation/PageHead";
import { type PanelSearch, TENANT_CHIPS, type TenantChip } from "@/navigation/search";
import { useChosenTenants } from "@/overview/useFindings";
import { NameDialog } from "@/parts/dialogs";
import { bytesText, counted, countText } from "@/parts/formats";
import { sorted, sortedBy, sortFrom, sortText } from "@/parts/sorting";
import { EmptyNote, LateSkeleton, Placeholder, ProblemNote } from "@/parts/states";
import { type Column, VirtualGrid } from "@/parts/VirtualGrid";
import { DATED, Moment } from "@/parts/values";
import { useEnvironment, useMay } from "@/session/session";
import "./tenants.css";

export function TenantsPage() {
  const environment = useEnvironment();
  const search = useSearch({ from: "/signed-in/tenants" });
  const navigate = useNavigate();
  const may = useMay();
  const { tenant: open } = useParams({ strict: false });
  const [isCreating, setCreating] = useState(false);
  // Ids are short: all pages are fetched, so that the search finds every tenant.
  const all = useList(tenantsQuery(environment), (page) => page.tenants, { isWhole: true });
  const { query: tenants, entries: ids } = all;
  const text = search.q ?? "";
  const chosen = useChosenTenants(environment, search.only);
  const shown = useMemo(
    () => ids.filter((id) => id.toLowerCase().includes(text.toLowerCase()) && (chosen.all || chosen.has(id))),
    [ids, text, chosen],
  );

  // What one is about to open is there by then.
  useEffect(() => void import("./TenantPanel"), []);

  const show = (changes: Partial<typeof search>) =>
    void navigate({ to: ".", search: (before) => ({ ...before, ...changes }), replace: true });

  function openTenant(tenant: string) {
    void navigate({
      to: "/tenants/$tenant",
      params: { tenant },
      search: (before) => ({ ...before, env: environment, panel: "snapshots" as const }),
    });
  }

  function onSearchKey(event: KeyboardEvent) {
    if (event.key === "Enter" && shown[0] !== undefined)
      openTenant(shown.find((id) => id === text) ?? shown[0]);
  }

  return (
    <div className="page">
      <PageHead title="Tenants">
        <TextInput
          aria-label="Search tenants"
          placeholder="Search"
          leftSection={<IconSearch size={15} />}
          value={text}
          autoFocus={open === undefined}
          onChange={(event) => show({ q: event.currentTarget.value || undefined })}
          onKeyDown={onSearchKey}
        />
        <TenantChips only={search.only} onOnly={(only) => show({ only })} />
        {may("snapshots:write") && (
          <Button
            variant="filled"
            size="sm"
            leftSection={<IconPlus size={15} />}
            onClick={() => setCreating(true)}
          >
            Create tenant
          </Button>
        )}
      </PageHead>
      {!tenants.data ? (
        <Placeholder query={tenants} lines={12} />
      ) : ids.length === 0 ? (
        <EmptyNote
          title={`There is no tenant in ${environment} yet.`}
          example={`freezeframe run etl.py --environment ${environment} --tenant acme`}
        >
          A job's first <code>update_snapshot</code>, or the button above, creates one.
        </EmptyNote>
      ) : chosen.error ? (
        <ProblemNote error={chosen.error} onRetry={chosen.retry} />
      ) : shown.length === 0 && chosen.isLooking ? (
        <LateSkeleton lines={12} label="Reading all tenants" />
      ) : shown.length === 0 && search.only ? (
        <EmptyNote title={`No tenant is “${CHIP_LABELS[search.only].toLowerCase()}”.`} />
      ) : shown.length === 0 ? (
        <EmptyNote title={`No tenant's id contains “${text}”.`}>
          {countText(ids.length)} tenants are in {environment}. Search another environment, or for part of the
          id.
        </EmptyNote>
      ) : (
        <TenantTable
          environment={environment}
          tenants={shown}
          total={ids.length}
          open={open}
          sort={search.sort}
          onSort={(sort) => show({ sort })}
          onOpen={openTenant}
        />
      )}
      {isCreating && (
        <CreateTenant environment={environment} onClose={() => setCreating(false)} onCreated={openTenant} />
      )}
      <Outlet />
    </div>
  );
}

interface CreateTenantProps {
  environment: string;
  onClose: () => void;
  onCreated: (tenant: string) => void;
}

/** A new tenant by its id. */
function CreateTenant({ environment, onClose, onCreated }: CreateTenantProps) {
  const client = useQueryClient();
  const [template, setTemplate] = useState<string | null>(null);
  const { entries: ids } = useList(tenantsQuery(environment), (page) => page.tenants);
  return (
    <NameDialog
      title={`Create a tenant in ${environment}`}
      label="Id"
      description="The customer's id in your system."
      action="Create"
      onSubmit={async (tenant) => {
        if (template === null) await createTenant(environment, tenant);
        else await cloneTenant({ environment, tenant: template }, tenant);
        await client.invalidateQueries({ queryKey: ["tenants"] });
        await client.invalidateQueries({ queryKey: ["environments"] });
        onCreated(tenant);
      }}
      onClose={onClose}
    >
      <Select
        label="Copy from"
        description="Its newest streams and files, without its past."
        placeholder="Empty"
        searchable
        clearable
        openOnFocus={false}
        limit={50}
        data={ids}
        value={template}
        onChange={setTemplate}
      />
    </NameDialog>
  );
}

const CHIP_LABELS: Record<TenantChip, string> = {
  failed: "Failed",
  stale: "Stale",
  changed: "Changed today",
};
const HINTS: Record<TenantChip, string> = {
  failed: "The newest job failed, timed out or died",
  stale: "The last sync is longer ago than usual",
  changed: "Rows changed today (UTC)",
};

/**
 * Chips that leave some tenants in the list: those whose last job failed, that are stale, or changed today.
 */
function TenantChips(props: {
  only: TenantChip | undefined;
  onOnly: (only: TenantChip | undefined) => void;
}) {
  return (
    <Group gap={4} role="group" aria-label="Only tenants that are">
      {TENANT_CHIPS.map((chip) => (
        <Button
          key={chip}
          radius="xl"
          variant={chip === props.only ? "filled" : "default"}
          aria-pressed={chip === props.only}
          title={HINTS[chip]}
          onClick={() => props.onOnly(chip === props.only ? undefined : chip)}
        >
          {CHIP_LABELS[chip]}
        </Button>
      ))}
    </Group>
  );
}

interface TenantTableProps {
  environment: string;
  tenants: readonly string[];
  total: number;
  open: string | undefined;
  sort: string | undefined;
  onSort: (sort: string | undefined) => void;
  onOpen: (tenant: string) => void;
}

const BY_ID = "tenant";
const VALUES: Record<string, (one: TenantSummary) => number | null> = {
  streams: (one) => one.streams,
  rows: (one) => one.rows,
  bytes: (one) => one.size_bytes,
  job: (one) => (one.last_job ? Date.parse(one.last_job.created) : null),
  changed: (one) => (one.changed ? Date.parse(one.changed) : null),
  days: (one) => one.days.reduce((sum, rows) => sum + rows, 0),
};

/**
 * Tenants with what is in them: asked for the rows that are seen, and for all where the list is sorted by
 * it.
 */
function TenantTable({ environment, tenants, total, open, onOpen, ...props }: TenantTableProps) {
  const columns = useMemo(() => columnsOf(environment), [environment]);
  const sort = useMemo(() => sortFrom(props.sort, BY_ID), [props.sort]);
  const value = VALUES[sort.column];
  const summaries = useQuery({ ...summariesQuery(environment, tenants), enabled: value !== undefined });
  const rows = useMemo(() => {
    if (!value) return sort.isDown ? [...tenants].reverse() : tenants;
    const known = new Map(summaries.data?.map((one) => [one.tenant, one]));
    const of = (tenant: string) => {
      const one = known.get(tenant);
      return one ? value(one) : null;
    };
    return sorted(tenants, of, sort.isDown);
  }, [tenants, sort, value, summaries.data]);
  return (
    <>
      <VirtualGrid
        label="Tenants"
        rows={rows}
        columns={columns}
        keyOf={(tenant) => tenant}
        sort={sort}
        onSort={(column) => {
          // What there is most of, or happened last, is what one looks for first.
          const next =
            column !== sort.column && column in VALUES ? { column, isDown: true } : sortedBy(sort, column);
          props.onSort(sortText(next) === BY_ID ? undefined : sortText(next));
        }}
        onOpen={onOpen}
        rowClass={(tenant) => (tenant === open ? "row-open" : "")}
      />
      <Text size="xs" c="dimmed" role="status">
        {tenants.length === total
          ? counted(total, "tenant")
          : `${countText(tenants.length)} of ${countText(total)} tenants`}
        {value && summaries.isFetching && !summaries.data && " · reading all tenants to sort"}
      </Text>
    </>
  );
}

type Show = (summary: TenantSummary) => React.ReactNode;

function columnsOf(environment: string): Column<string>[] {
  function seen(id: string, header: string, width: string, show: Show, isExtra = false): Column<string> {
    return {
      id,
      header,
      width,
      isExtra,
      isSortable: true,
      align: "right",
      cell: (tenant) => <Seen environment={environment} tenant={tenant} show={show} />,
    };
  }
  return [
    {
      id: BY_ID,
      header: "Tenant",
      width: "minmax(104px, 1.6fr)",
      isSortable: true,
      cell: (tenant) => <strong className="tenant-id">{tenant}</strong>,
    },
    seen("streams", "Streams", "60px", (one) => countText(one.streams), true),
    seen("rows", "Rows", "minmax(76px, 0.5fr)", (one) => countText(one.rows)),
    seen("bytes", "Size", "68px", (one) => bytesText(one.size_bytes), true),
    seen(
      "job",
      "Last job",
      "minmax(148px, 0.4fr)",
      ({ tenant, last_job: job }) =>
        job ? (
          <TenantLink tenant={tenant} title="Open this job" search={{ panel: "jobs", job: job.job_id }}>
            <span className="last-job">
              <JobStatus status={job.status} />
              <Moment at={job.finished ?? job.created} />
            </span>
          </TenantLink>
        ) : (
          <span className="null-dash">–</span>
        ),
      true,
    ),
    seen("changed", "Changed", DATED, ({ tenant, changed }) =>
      changed ? (
        <TenantLink tenant={tenant} title={`Open the history of ${tenant}`} search={{ panel: "history" }}>
          <Moment at={changed} isDated />
        </TenantLink>
      ) : (
        <span className="null-dash">–</span>
      ),
    ),
    seen("days", "30 days", "104px", (one) => <Sparkline values={one.days} />, true),
  ];
}

interface TenantLinkProps {
  tenant: string;
  title: string;
  search: PanelSearch;
  children: React.ReactNode;
}

/** A cell that leads to a tab of the tenant's panel; the rest of the row leads to its snapshots. */
function TenantLink({ tenant, title, search, children }: TenantLinkProps) {
  return (
    <Link
      className="cell-link"
      title={title}
      to="/tenants/$tenant"
      params={{ tenant }}
      search={(before) => ({ ...before, ...search })}
    >
      {children}
    </Link>
  );
}

function Seen({ environment, tenant, show }: { environment: string; tenant: string; show: Show }) {
  const { data, isError } = useQuery(summaryQuery({ environment, tenant }));
  const damage = data && "code" in data ? `The tenant cannot be read (${data.code}).` : undefined;
  if (isError || damage) {
    return (
      <span className="null-dash" title={damage}>
        ?
      </span>
    );
  }
  return data && "rows" in data ? show(data) : null;
}

const WIDTH = 100;
const HEIGHT = 20;

/** Changed rows per day as small bars; the numbers are told to who cannot see them. */
function Sparkline({ values }: { values: readonly number[] }) {
  const most = Math.max(...values, 1);
  const step = WIDTH / Math.max(values.length, 1);
  const total = values.reduce((sum, value) => sum + value, 0);
  return (
    <svg
      className="spark"
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={`${total} rows changed in ${values.length} days`}
    >
      {values.map((value, day) => {
        if (value === 0) return null;
        const height = Math.max(2, (value / most) * HEIGHT);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a bar is its day
          <rect key={day} x={day * step} y={HEIGHT - height} width={step - 1} height={height} rx={0.5} />
        );
      })}
    </svg>
  );
}
