// Tenants with what is in them: asked for the rows that are seen, and for no others.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { overviewQuery } from "@/api/queries";
import type { Overview } from "@/api/types";
import { bytesText, countText } from "@/parts/formats";
import { Moment } from "@/parts/Moment";
import { type Column, VirtualGrid } from "@/parts/VirtualGrid";
import { Sparkline } from "./Sparkline";

interface TenantTableProps {
  environment: string;
  tenants: readonly string[];
  total: number;
  open: string | undefined;
  onOpen: (tenant: string) => void;
}

export function TenantTable({ environment, tenants, total, open, onOpen }: TenantTableProps) {
  const columns = useMemo(() => columnsOf(environment), [environment]);
  return (
    <>
      <VirtualGrid
        label="Tenants"
        rows={tenants}
        columns={columns}
        keyOf={(tenant) => tenant}
        onOpen={onOpen}
        rowClass={(tenant) => (tenant === open ? "row-open" : "")}
      />
      <Text size="xs" c="dimmed">
        {tenants.length === total
          ? `${countText(total)} tenants`
          : `${countText(tenants.length)} of ${countText(total)} tenants`}
      </Text>
    </>
  );
}

function columnsOf(environment: string): Column<string>[] {
  function seen(
    id: string,
    header: string,
    width: string,
    show: (overview: Overview) => React.ReactNode,
    isExtra = false,
  ) {
    return {
      id,
      header,
      width,
      isExtra,
      align: "right" as const,
      cell: (tenant: string) => <Seen environment={environment} tenant={tenant} show={show} />,
    };
  }
  return [
    {
      id: "tenant",
      header: "Tenant",
      width: "minmax(120px, 1.6fr)",
      cell: (tenant) => <strong className="tenant-id">{tenant}</strong>,
    },
    seen("streams", "Streams", "70px", (one) => countText(one.streams.length), true),
    seen("rows", "Rows", "100px", (one) =>
      countText(one.streams.reduce((sum, stream) => sum + stream.rows, 0)),
    ),
    seen(
      "bytes",
      "Size",
      "80px",
      (one) => bytesText(one.file_bytes + one.streams.reduce((sum, stream) => sum + stream.size_bytes, 0)),
      true,
    ),
    seen("last", "Last change", "100px", (one) =>
      one.last ? <Moment at={one.last.timestamp} /> : <span className="null-dash">–</span>,
    ),
    { ...seen("days", "30 days", "104px", (one) => <Sparkline values={one.days} />, true) },
  ];
}

function Seen(props: { environment: string; tenant: string; show: (overview: Overview) => React.ReactNode }) {
  const { data, isError } = useQuery(overviewQuery({ environment: props.environment, tenant: props.tenant }));
  if (isError) return <span className="null-dash">?</span>;
  return data ? props.show(data) : null;
}
