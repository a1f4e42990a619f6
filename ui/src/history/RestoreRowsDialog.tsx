// Single rows brought back: first what becomes of each, then one button; the result is one new version.
import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { tenantKey } from "@/api/place";
import type { RowRestoration } from "@/api/types";
import { countText } from "@/parts/formats";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { tell } from "@/parts/toasts";
import { ChangedRowsTable } from "@/streams/ChangedRowsTable";
import { NOTHING_OPEN, usePanel } from "@/tenants/panel";
import { restoreRows } from "./history-queries";
import type { RowKey } from "./row-keys";

const SHOWN_MAX = 200;

interface RestoreRowsDialogProps {
  stream: string;
  version: number;
  keys: RowKey[];
  onClose: () => void;
}

export function RestoreRowsDialog({ stream, version, keys, onClose }: RestoreRowsDialogProps) {
  const { place, go } = usePanel();
  const client = useQueryClient();
  const order = { version, keys, message: "" };
  const effect = useQuery({
    queryKey: [...tenantKey(place), "row-restoration", stream, version, keys],
    queryFn: () => restoreRows(place, stream, { ...order, dry_run: true }),
    gcTime: 0,
  });
  const restoring = useMutation({
    mutationFn: () => restoreRows(place, stream, { ...order, dry_run: false }),
    onSuccess: async (done) => {
      onClose();
      await client.invalidateQueries({ queryKey: tenantKey(place) });
      tell(`Restored as version ${done.tenant_version}.`);
      go({ ...NOTHING_OPEN, panel: "history" });
    },
  });
  const count = `${countText(keys.length)} ${keys.length === 1 ? "row" : "rows"}`;
  const isEmpty = effect.data?.rows.length === 0;
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Restore ${count} of ${stream} as of version ${version}`}
      size="80%"
    >
      <Stack>
        {effect.isPending && <LateSkeleton lines={4} label="Looking what will change" />}
        {effect.isError && <ProblemNote error={effect.error} />}
        {effect.data && !isEmpty && (
          <>
            <Text size="sm">{toldEffect(effect.data, keys.length)}</Text>
            <ChangedRowsTable
              label="What will change"
              rows={effect.data.rows.slice(0, SHOWN_MAX)}
              keyNames={effect.data.key}
            />
            {effect.data.rows.length > SHOWN_MAX && (
              <Text size="xs" c="dimmed">
                The first {countText(SHOWN_MAX)} of {countText(effect.data.rows.length)} rows are shown.
              </Text>
            )}
          </>
        )}
        {restoring.isError && <ProblemNote error={restoring.error} />}
        <Group justify="space-between">
          <Text size="sm" c="dimmed">
            {isEmpty
              ? "These rows already are as they were then."
              : "This makes a new version. Nothing that came since is lost."}
          </Text>
          <Group>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button
              data-autofocus
              disabled={!effect.data || isEmpty}
              loading={restoring.isPending}
              onClick={() => restoring.mutate()}
            >
              Restore
            </Button>
          </Group>
        </Group>
      </Stack>
    </Modal>
  );
}

function toldEffect({ counts, rows }: RowRestoration, chosen: number): string {
  const parts = [
    counts.updated > 0 && `${countText(counts.updated)} changed back`,
    counts.inserted > 0 && `${countText(counts.inserted)} brought back`,
    counts.deleted > 0 && `${countText(counts.deleted)} removed, because not there then`,
    chosen > rows.length && `${countText(chosen - rows.length)} already as then`,
  ].filter(Boolean);
  return `${parts.join(" · ")}.`;
}
