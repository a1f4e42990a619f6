// A stream below the breadcrumb: its rows, its schema, its versions.
import {
  ActionIcon,
  Button,
  Group,
  Menu,
  SegmentedControl,
  Text,
  Tooltip,
  VisuallyHidden,
} from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import {
  IconChevronDown,
  IconChevronLeft,
  IconChevronRight,
  IconDots,
  IconDownload,
} from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { exportAddress } from "@/api/client";
import { historyQuery, overviewQuery, useList } from "@/api/queries";
import type { TenantVersion } from "@/api/types";
import { RestoreDialog } from "@/history/Restore";
import { jobOf, makerText, steps } from "@/history/versions";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { STREAM_VIEWS, type StreamView } from "@/navigation/search";
import { agoText, bytesText, countText } from "@/parts/formats";
import { save } from "@/parts/page";
import { Placeholder } from "@/parts/states";
import { type Column, VirtualGrid } from "@/parts/VirtualGrid";
import { Changes, DATED, Moment, useNow } from "@/parts/values";
import { useMay } from "@/session/session";
import { UploadList } from "@/uploads/UploadList";
import { DeliveryView, deliveriesQuery } from "./DeliveryView";
import { ImportDialog } from "./ImportDialog";
import { PreviewGrid } from "./PreviewGrid";
import { RowSheet } from "./RowSheet";
import { SchemaView } from "./SchemaView";
import "./streams.css";

const TITLES: Record<StreamView, string> = {
  preview: "Preview",
  schema: "Schema",
  versions: "Versions",
  delivery: "Delivery",
};
const FORMATS = [
  ["csv", "CSV"],
  ["xlsx", "Excel"],
  ["parquet", "Parquet"],
  ["jsonl", "JSON Lines"],
] as const;

export default function StreamPage() {
  const { place, search, version, go } = usePanel();
  const may = useMay();
  const stream = search.stream ?? "";
  const [isImporting, setImporting] = useState(false);
  const overview = useQuery(overviewQuery(place, version));
  const known = overview.data?.streams.find((one) => one.stream === stream);
  const view = search.view ?? "preview";
  const deliveries = useQuery(deliveriesQuery(place)).data?.deliveries ?? [];
  const targets = deliveries.filter((one) => one.stream === stream).map((one) => one.target);
  const views = STREAM_VIEWS.filter((one) => one !== "delivery" || targets.length > 0);
  return (
    <>
      <Group gap="sm">
        <SegmentedControl
          size="xs"
          aria-label="Part of the stream"
          value={view}
          onChange={(value) => go({ view: value as StreamView })}
          data={views.map((one) => ({ value: one, label: TITLES[one] }))}
        />
        <Group gap={6} ml="auto">
          <AsOfStepper stream={stream} />
          {may("snapshots:write") && may("jobs:run") && version === undefined && (
            <Button onClick={() => setImporting(true)}>Import</Button>
          )}
          <Menu position="bottom-end">
            <Menu.Target>
              <Button leftSection={<IconDownload size={14} />} rightSection={<IconChevronDown size={13} />}>
                Download
              </Button>
            </Menu.Target>
            <Menu.Dropdown>
              {FORMATS.map(([format, label]) => (
                <Menu.Item key={format} onClick={() => save(exportAddress(place, stream, format, version))}>
                  {label}
                </Menu.Item>
              ))}
            </Menu.Dropdown>
          </Menu>
        </Group>
      </Group>
      {known && (
        <Text size="xs" c="dimmed" component="div">
          {countText(known.rows)} rows · {bytesText(known.size_bytes)}
          {known.last && (
            <>
              {" · "}
              <Changes counts={known.last.counts} /> · <Moment at={known.last.timestamp} />
              {known.last.job_id && jobOf(known.last) && ` by ${known.last.job_id}`}
            </>
          )}
        </Text>
      )}
      <UploadList place={place} />
      {view === "preview" && <PreviewGrid stream={stream} />}
      {view === "schema" && <SchemaView stream={stream} />}
      {view === "versions" && <StreamVersions stream={stream} />}
      {view === "delivery" && <DeliveryView stream={stream} targets={targets} />}
      {search.row !== undefined && <RowSheet key={search.row} stream={stream} rowKey={search.row} />}
      {isImporting && (
        <ImportDialog stream={stream} streamKey={known?.key ?? []} onClose={() => setImporting(false)} />
      )}
    </>
  );
}

/** Back and forth through the versions that changed this stream; the newest one is now. */
function AsOfStepper({ stream }: { stream: string }) {
  const { place, version } = usePanel();
  const now = useNow();
  const { entries: versions, more } = useList(historyQuery(place, { stream }), (page) => page.versions);
  const step = steps(
    versions.map((one) => one.version),
    version,
  );

  // Where the version that is shown lies before what is loaded, the step back is not known yet.
  useEffect(() => {
    if (step.earlier === undefined) more();
  }, [step.earlier, more]);

  if (versions.length === 0) return null;
  const shown = versions.find((one) => one.version === step.current);
  const name = version === undefined ? "Now" : shown ? agoText(shown.timestamp, now) : `Version ${version}`;
  return (
    <Group gap={2} wrap="nowrap" role="group" aria-label={`${stream} as of`}>
      <Step label="Previous version" to={step.earlier}>
        <IconChevronLeft size={15} />
      </Step>
      <Tooltip label={shown ? `Version ${shown.version}: ${shown.message || makerText(shown)}` : name}>
        <span className="as-of">{name}</span>
      </Tooltip>
      <Step label="Next version" to={step.later}>
        <IconChevronRight size={15} />
      </Step>
    </Group>
  );
}

function Step({
  label,
  to,
  children,
}: {
  label: string;
  to: number | "now" | undefined;
  children: ReactNode;
}) {
  const { go } = usePanel();
  const open = () => go({ v: to === "now" ? undefined : to });
  return (
    <ActionIcon size="sm" variant="default" aria-label={label} disabled={to === undefined} onClick={open}>
      {children}
    </ActionIcon>
  );
}

const NONE: ReadonlySet<string> = new Set();

/** The tenant's versions that changed one stream: to see what each did, to download it, to look from there. */
function StreamVersions({ stream }: { stream: string }) {
  const { place, go } = usePanel();
  const may = useMay();
  const [ticked, setTicked] = useState<ReadonlySet<string>>(NONE);
  const [restored, setRestored] = useState<number>();
  const { query, entries, more } = useList(historyQuery(place, { stream }), (page) => page.versions);
  // The panel beside the list of tenants has room for the buttons on wide screens alone.
  const isNarrow = useMediaQuery("(max-width: 1200px)", false, { getInitialValueInEffect: false });
  const actionsOf = (version: number): Action[] => [
    ["CSV", () => save(exportAddress(place, stream, "csv", version))],
    ["Parquet", () => save(exportAddress(place, stream, "parquet", version))],
    ["View", () => go({ v: version, view: "preview" })],
    ...(may("snapshots:write") ? [["Restore…", () => setRestored(version)] satisfies Action] : []),
  ];
  const columns: Column<TenantVersion>[] = [
    { id: "version", header: "Version", width: "52px", align: "right", cell: (one) => one.version },
    { id: "at", header: "When", width: DATED, cell: (one) => <Moment at={one.timestamp} isDated /> },
    {
      id: "who",
      header: "By",
      width: "minmax(64px, 1fr)",
      isExtra: true,
      cell: (one) => makerText(one),
    },
    { id: "rows", header: "Rows", width: "92px", cell: (one) => <Counts version={one} stream={stream} /> },
    {
      id: "actions",
      header: isNarrow ? <VisuallyHidden>Actions</VisuallyHidden> : "Actions",
      width: isNarrow ? "36px" : "308px",
      align: "right",
      cell: (one) => <Actions version={one.version} actions={actionsOf(one.version)} isNarrow={isNarrow} />,
    },
  ];
  function compare(before: number, after: number) {
    go({ ...NOTHING_OPEN, panel: "history", before, after, diff: `stream ${stream}` });
  }

  const [before, after] = [...ticked].map(Number).sort((one, other) => one - other);
  if (!query.data) return <Placeholder query={query} />;
  return (
    <>
      <Group gap="xs" mih={26}>
        <Text c="dimmed" role="status">
          {ticked.size === 0 ? "Tick two versions to compare them." : `${ticked.size} of 2 ticked`}
        </Text>
        <Button
          variant="filled"
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
        rows={entries}
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
        onNearEnd={more}
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
          <Button key={label} size="compact-xs" onClick={act}>
            {label}
          </Button>
        ))}
      </Group>
    );
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon aria-label={`Actions of version ${version}`} onClick={(event) => event.stopPropagation()}>
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
