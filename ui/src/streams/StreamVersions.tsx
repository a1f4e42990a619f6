// The tenant's versions that changed one stream: to see what each did, to download it, to look from there.
import { ActionIcon, Button, Group, Menu, Text, VisuallyHidden } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { IconDots } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { exportAddress } from "@/api/place";
import { historyQuery } from "@/api/queries";
import type { TenantVersion } from "@/api/types";
import { makerText } from "@/history/maker";
import { RestoreDialog } from "@/history/RestoreDialog";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { Changes } from "@/parts/Changes";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { DATED, Moment } from "@/parts/Moment";
import { ProblemNote } from "@/parts/ProblemNote";
import { save } from "@/parts/save";
import { type Column, NARROW, VirtualGrid } from "@/parts/VirtualGrid";
import { useMay } from "@/session/session";

const NONE: ReadonlySet<string> = new Set();

export function StreamVersions({ stream }: { stream: string }) {
  const { place, go } = usePanel();
  const may = useMay();
  const [ticked, setTicked] = useState<ReadonlySet<string>>(NONE);
  const [restored, setRestored] = useState<number>();
  const history = useInfiniteQuery(historyQuery(place, { stream }));
  const versions = useMemo(() => history.data?.pages.flatMap((page) => page.versions) ?? [], [history.data]);
  const isNarrow = useMediaQuery(NARROW, false, { getInitialValueInEffect: false });
  const actionsOf = (version: number): Action[] => [
    ["CSV", () => save(exportAddress(place, stream, "csv", version))],
    ["Parquet", () => save(exportAddress(place, stream, "parquet", version))],
    ["View as of", () => go({ v: version, view: "preview" })],
    ...(may("snapshots:write") ? [["Restore…", () => setRestored(version)] satisfies Action] : []),
  ];
  const columns: Column<TenantVersion>[] = [
    { id: "version", header: "Version", width: "70px", align: "right", cell: (one) => one.version },
    { id: "at", header: "When", width: DATED, cell: (one) => <Moment at={one.timestamp} isDated /> },
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
      header: isNarrow ? <VisuallyHidden>Actions</VisuallyHidden> : "Actions",
      width: isNarrow ? "36px" : "286px",
      align: "right",
      cell: (one) => <Actions version={one.version} actions={actionsOf(one.version)} isNarrow={isNarrow} />,
    },
  ];
  function compare(before: number, after: number) {
    go({ ...NOTHING_OPEN, panel: "history", before, after, diff: `stream ${stream}` });
  }

  const [before, after] = [...ticked].map(Number).sort((one, other) => one - other);
  if (history.isPending) return <LateSkeleton />;
  if (history.isLoadingError) return <ProblemNote error={history.error} onRetry={() => history.refetch()} />;
  return (
    <>
      <Group gap="xs" mih={26}>
        <Text size="sm" c="dimmed" role="status">
          {ticked.size === 0 ? "Tick two versions to compare them." : `${ticked.size} of 2 ticked`}
        </Text>
        <Button
          size="compact-sm"
          ml="auto"
          disabled={after === undefined}
          onClick={() => {
            if (before !== undefined && after !== undefined) compare(before, after);
          }}
        >
          {after === undefined ? "Compare" : `Compare ${before} with ${after}`}
        </Button>
      </Group>
      <VirtualGrid
        label={`Versions of ${stream}`}
        rows={versions}
        columns={columns}
        keyOf={(one) => String(one.version)}
        nameOf={(one) => `version ${one.version}`}
        selected={ticked}
        selectedMax={2}
        onSelect={setTicked}
        onOpen={({ version }) => {
          // Before version 0 there is nothing to compare with.
          if (version === 0) go({ v: version, view: "preview" });
          else compare(version - 1, version);
        }}
        onNearEnd={() => {
          if (history.hasNextPage && !history.isFetchingNextPage) void history.fetchNextPage();
        }}
      />
      {restored !== undefined && (
        <RestoreDialog
          order={{ version: restored, streams: [stream] }}
          onClose={() => setRestored(undefined)}
        />
      )}
    </>
  );
}

type Action = [label: string, act: () => void];

interface ActionsProps {
  version: number;
  actions: readonly Action[];
  isNarrow: boolean;
}

/** What can be done with a version: buttons, or a menu where these have no room. */
function Actions({ version, actions, isNarrow }: ActionsProps) {
  if (!isNarrow)
    return (
      <Group gap={4} wrap="nowrap" justify="flex-end" onClick={(event) => event.stopPropagation()}>
        {actions.map(([label, act]) => (
          <Button key={label} size="compact-xs" variant="default" onClick={act}>
            {label}
          </Button>
        ))}
      </Group>
    );
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={`What to do with version ${version}`}
          onClick={(event) => event.stopPropagation()}
        >
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown onClick={(event) => event.stopPropagation()}>
        {actions.map(([label, act]) => (
          <Menu.Item key={label} onClick={act}>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function Counts({ version, stream }: { version: TenantVersion; stream: string }) {
  const counts = version.streams[stream];
  return counts ? <Changes counts={counts} /> : <span className="mark-gone">dropped</span>;
}
