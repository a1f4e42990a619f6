// A stream below the breadcrumb: its rows, its schema, its versions.
import { Button, Group, Menu, SegmentedControl, Text } from "@mantine/core";
import { IconChevronDown, IconDownload } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { exportAddress } from "@/api/place";
import { overviewQuery } from "@/api/queries";
import { jobOf } from "@/history/maker";
import { usePanel } from "@/navigation/panel";
import { STREAM_VIEWS, type StreamView } from "@/navigation/search";
import { Changes } from "@/parts/Changes";
import { bytesText, countText } from "@/parts/formats";
import { Moment } from "@/parts/Moment";
import { save } from "@/parts/save";
import { useMay } from "@/session/session";
import { UploadList } from "@/uploads/UploadList";
import { AsOfStepper } from "./AsOfStepper";
import { ImportDialog } from "./ImportDialog";
import { PreviewGrid } from "./PreviewGrid";
import { RowSheet } from "./RowSheet";
import { SchemaView } from "./SchemaView";
import { StreamVersions } from "./StreamVersions";
import "./streams.css";

const TITLES: Record<StreamView, string> = { preview: "Preview", schema: "Schema", versions: "Versions" };
const FORMATS = [
  ["csv", "CSV"],
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
  return (
    <>
      <Group gap="sm">
        <SegmentedControl
          size="xs"
          aria-label="Part of the stream"
          value={view}
          onChange={(value) => go({ view: value as StreamView })}
          data={STREAM_VIEWS.map((one) => ({ value: one, label: TITLES[one] }))}
        />
        <Group gap={6} ml="auto">
          <AsOfStepper stream={stream} />
          {may("snapshots:write") && may("jobs:run") && version === undefined && (
            <Button size="compact-sm" variant="default" onClick={() => setImporting(true)}>
              Import
            </Button>
          )}
          <Menu position="bottom-end">
            <Menu.Target>
              <Button
                size="compact-sm"
                variant="default"
                leftSection={<IconDownload size={14} />}
                rightSection={<IconChevronDown size={13} />}
              >
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
      {search.row !== undefined && <RowSheet key={search.row} stream={stream} rowKey={search.row} />}
      {isImporting && (
        <ImportDialog stream={stream} streamKey={known?.key ?? []} onClose={() => setImporting(false)} />
      )}
    </>
  );
}
