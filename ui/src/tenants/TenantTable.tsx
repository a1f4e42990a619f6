// Tenants with what is in them: asked for the rows that are seen, and for all where the list is sorted by it.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { summariesQuery, summaryQuery } from "@/api/queries";
import type { TenantSummary } from "@/api/types";
import { JobStatus } from "@/jobs/jobColumns";
import { bytesText, countText } from "@/parts/formats";
import { DATED, Moment } from "@/parts/Moment";
import { sorted, sortedBy, sortFrom, sortText } from "@/parts/sorting";
import { type Column, VirtualGrid } from "@/parts/VirtualGrid";
import { Sparkline } from "./Sparkline";

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

export function TenantTable({ environment, tenants, total, open, onOpen, ...props }: TenantTableProps) {
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
          ? `${countText(total)} ${total === 1 ? "tenant" : "tenants"}`
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
      width: "minmax(120px, 1.6fr)",
      isSortable: true,
      cell: (tenant) => <strong className="tenant-id">{tenant}</strong>,
    },
    seen("streams", "Streams", "76px", (one) => countText(one.streams), true),
    seen("rows", "Rows", "100px", (one) => countText(one.rows)),
    seen("bytes", "Size", "80px", (one) => bytesText(one.size_bytes), true),
    seen("job", "Last job", "172px", lastJob, true),
    seen("changed", "Changed", DATED, (one) =>
      one.changed ? <Moment at={one.changed} isDated /> : <span className="null-dash">–</span>,
    ),
    seen("days", "30 days", "104px", (one) => <Sparkline values={one.days} />, true),
  ];
}

function lastJob({ last_job: job }: TenantSummary) {
  if (!job) return <span className="null-dash">–</span>;
  return (
    <span className="last-job">
      <JobStatus status={job.status} />
      <Moment at={job.finished ?? job.created} />
    </span>
  );
}

function Seen({ environment, tenant, show }: { environment: string; tenant: string; show: Show }) {
  const { data, isError } = useQuery(summaryQuery({ environment, tenant }));
  if (isError) return <span className="null-dash">?</span>;
  return data ? show(data) : null;
}
