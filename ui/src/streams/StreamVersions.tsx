// The tenant's versions that changed one stream: to see what each did, to download it, to look from there.
import { Button, Group } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { exportAddress } from "@/api/place";
import { historyQuery } from "@/api/queries";
import type { TenantVersion } from "@/api/types";
import { makerText } from "@/history/maker";
import { Changes } from "@/parts/Changes";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { Moment } from "@/parts/Moment";
import { ProblemNote } from "@/parts/ProblemNote";
import { type Column, VirtualGrid } from "@/parts/VirtualGrid";
import { save } from "@/snapshots/download";
import { usePanel } from "@/tenants/panel";

export function StreamVersions({ stream }: { stream: string }) {
  const { place, go } = usePanel();
  const history = useInfiniteQuery(historyQuery(place, { stream }));
  const versions = useMemo(() => history.data?.pages.flatMap((page) => page.versions) ?? [], [history.data]);
  const columns: Column<TenantVersion>[] = [
    { id: "version", header: "Version", width: "70px", align: "right", cell: (one) => one.version },
    { id: "at", header: "When", width: "90px", cell: (one) => <Moment at={one.timestamp} /> },
    {
      id: "who",
      header: "Job or person",
      width: "minmax(80px, 1fr)",
      isExtra: true,
      cell: (one) => makerText(one),
    },
    { id: "rows", header: "Rows", width: "120px", cell: (one) => <Counts version={one} stream={stream} /> },
    {
      id: "actions",
      header: "",
      width: "212px",
      align: "right",
      cell: (one) => (
        <Group gap={4} wrap="nowrap" justify="flex-end">
          <Button
            size="compact-xs"
            variant="default"
            onClick={() => save(exportAddress(place, stream, "csv", one.version))}
          >
            CSV
          </Button>
          <Button
            size="compact-xs"
            variant="default"
            onClick={() => save(exportAddress(place, stream, "parquet", one.version))}
          >
            Parquet
          </Button>
          <Button size="compact-xs" variant="default" onClick={() => go({ v: one.version, view: "preview" })}>
            View as of
          </Button>
        </Group>
      ),
    },
  ];
  if (history.isPending) return <LateSkeleton />;
  if (history.isError) return <ProblemNote error={history.error} onRetry={() => history.refetch()} />;
  return (
    <VirtualGrid
      label={`Versions of ${stream}`}
      rows={versions}
      columns={columns}
      keyOf={(one) => String(one.version)}
      onNearEnd={() => {
        if (history.hasNextPage && !history.isFetchingNextPage) void history.fetchNextPage();
      }}
    />
  );
}

function Counts({ version, stream }: { version: TenantVersion; stream: string }) {
  const counts = version.streams[stream];
  return counts ? <Changes counts={counts} /> : <span className="mark-gone">dropped</span>;
}
