// Bringing back: first what will change, in the same view as any difference, then one button.
import { Button, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { restore } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { differenceQuery, overviewQuery } from "@/api/queries";
import type { Restoration } from "@/api/types";
import { usePanel } from "@/navigation/panel";
import { countText } from "@/parts/formats";
import { Moment } from "@/parts/Moment";
import { RestoreFrame, useRestoring } from "./RestoreFrame";
import { RowDifferenceGrid } from "./RowDifferenceGrid";
import type { RestoreOrder } from "./Timeline";

const FATES = {
  changed: "changes",
  "brought back": "comes back",
  removed: "is deleted",
} as const;

export function RestoreDialog({ order, onClose }: { order: RestoreOrder; onClose: () => void }) {
  const { place } = usePanel();
  const overview = useQuery(overviewQuery(place));
  const body = {
    version: order.version,
    streams: order.streams ?? null,
    files: order.files ?? null,
    message: "",
  };
  const effect = useQuery({
    queryKey: [...tenantKey(place), "restore-preview", order],
    queryFn: () => restore(place, { ...body, dry_run: true }),
    gcTime: 0,
  });
  const restoring = useRestoring(() => restore(place, { ...body, dry_run: false }), onClose);
  const what = order.streams?.join(", ") ?? order.files?.join(", ") ?? "everything";
  const source = useQuery(overviewQuery(place, order.version));
  const isEmpty = effect.data !== undefined && nothing(effect.data);
  return (
    <RestoreFrame
      title={`Restore ${what} as of version ${order.version}`}
      effect={effect}
      restoring={restoring}
      isEmpty={isEmpty}
      emptyText="Everything already is as it was then."
      onClose={onClose}
    >
      {source.data?.timestamp && (
        <Text size="sm">
          {what === "everything" ? "Everything" : what} as of version {order.version}
          {order.maker && `, after ${order.maker}`}: <Moment at={source.data.timestamp} isDated />.
        </Text>
      )}
      {effect.data && <Effect effect={effect.data} now={overview.data?.version} />}
    </RestoreFrame>
  );
}

function Effect({ effect, now }: { effect: Restoration; now: number | undefined }) {
  const streams = Object.entries(effect.streams);
  const [shown, setShown] = useState<string | undefined>(streams.length === 1 ? streams[0]?.[0] : undefined);
  return (
    <>
      {streams.map(([name, one]) => (
        <Group key={name} gap="sm">
          <Text size="sm">
            <strong>{name}</strong> {FATES[one.fate]}
            {one.fate === "changed" && (
              <>
                : {countText(one.rows_before)} → {countText(one.rows_after)} rows
                {now !== undefined && <Counts stream={name} before={now} after={effect.version} />}
              </>
            )}
            {one.fate === "brought back" && ` with ${countText(one.rows_after)} rows`}
            {one.fate === "removed" && `: its ${countText(one.rows_before)} rows did not exist then`}
          </Text>
          {streams.length > 1 && (
            <Button
              size="compact-xs"
              variant="default"
              onClick={() => setShown(shown === name ? undefined : name)}
            >
              {shown === name ? "Hide the rows" : "Show the rows"}
            </Button>
          )}
        </Group>
      ))}
      {effect.files_written.length > 0 && (
        <Text size="sm">Restored files: {effect.files_written.join(", ")}</Text>
      )}
      {effect.files_deleted.length > 0 && (
        <Text size="sm">Deleted files: {effect.files_deleted.join(", ")}</Text>
      )}
      {shown && now !== undefined && (
        <div className="restore-rows">
          <RowDifferenceGrid stream={shown} before={now} after={effect.version} />
        </div>
      )}
    </>
  );
}

/** How many rows return, go and change; counted by the service as for a difference of versions. */
function Counts({ stream, before, after }: { stream: string; before: number; after: number }) {
  const { place } = usePanel();
  const difference = useQuery(differenceQuery(place, before, after));
  const counts = difference.data?.streams[stream];
  if (!counts) return null;
  const parts = [
    counts.inserted > 0 && `${countText(counts.inserted)} return`,
    counts.deleted > 0 && `${countText(counts.deleted)} are deleted`,
    counts.updated > 0 && `${countText(counts.updated)} get their old values`,
  ].filter(Boolean);
  return parts.length > 0 ? ` (${parts.join(", ")})` : null;
}

function nothing(effect: Restoration): boolean {
  return Object.keys(effect.streams).length + effect.files_written.length + effect.files_deleted.length === 0;
}
