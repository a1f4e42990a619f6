// What targets have of a stream's rows: how many are pending, which were refused and why, which only they have.
import { Button, Group, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { retryRows } from "@/api/changes";
import { type Place, streamAddress, tenantAddress, tenantKey } from "@/api/client";
import { oneQuery, shownTenant } from "@/api/queries";
import type { DeliveryList, DeliveryReport, UndeliveredRow } from "@/api/types";
import { keyText } from "@/history/versions";
import { usePanel } from "@/navigation/panel";
import { counted, countText } from "@/parts/formats";
import { PlainTable } from "@/parts/PlainTable";
import { Placeholder } from "@/parts/states";
import { tell, tellProblem } from "@/parts/toasts";
import type { Column } from "@/parts/VirtualGrid";
import { Changes, Moment, valueText } from "@/parts/values";
import { useMay } from "@/session/session";

const CHANGES: Record<string, string> = { insert: "new", update_postimage: "changed", delete: "deleted" };
const LISTED = 500;

export function deliveriesQuery(place: Place) {
  return oneQuery<DeliveryList>([...tenantKey(place), "deliveries"], `${tenantAddress(place)}/deliveries`);
}

function reportQuery(place: Place, stream: string, target: string) {
  const url = `${streamAddress(place, stream)}/deliveries/${encodeURIComponent(target)}`;
  return oneQuery<DeliveryReport>([...tenantKey(place), "deliveries", stream, target], url, {
    limit: LISTED,
  });
}

export function DeliveryView({ stream, targets }: { stream: string; targets: readonly string[] }) {
  return targets.map((target) => <Target key={target} stream={stream} target={target} />);
}

/** One target: its rows that wait, and those that it refused as they are. */
function Target({ stream, target }: { stream: string; target: string }) {
  const { place, go } = usePanel();
  const may = useMay();
  const client = useQueryClient();
  const report = useQuery(reportQuery(place, stream, target));
  const retrying = useMutation({
    mutationFn: (keys: readonly string[]) =>
      retryRows(place, stream, target, keys, shownTenant(client, place)),
    onSuccess: ({ rows }) => {
      tell(`${counted(rows, "row")} will be sent to ${target} again.`);
      void client.invalidateQueries({ queryKey: tenantKey(place) });
    },
    onError: tellProblem,
  });
  if (!report.data) return <Placeholder query={report} label={`Reading what ${target} has`} />;
  const { rows, accepted, rejected, pending, is_whole, state } = report.data;
  const refused = rows.filter((row) => row.is_rejected);
  const alone = rows.filter((row) => !row.is_rejected);
  const textOf = (row: UndeliveredRow) => keyText(row.key, Object.keys(row.key));
  const key: Column<UndeliveredRow> = {
    id: "key",
    header: "Key",
    cell: (row) => Object.values(row.key).map(valueText).join(", "),
  };
  const columns: Column<UndeliveredRow>[] = [
    key,
    { id: "change", header: "Row", cell: (row) => CHANGES[row.change] },
    { id: "error", header: "Reason", cell: (row) => row.error },
    { id: "when", header: "Refused", cell: (row) => row.answered_at && <Moment at={row.answered_at} /> },
    {
      id: "retry",
      header: "Actions",
      align: "right",
      cell: (row) =>
        may("snapshots:write") && (
          <Button
            size="compact-xs"
            aria-label={`Send ${textOf(row)} again`}
            onClick={() => retrying.mutate([textOf(row)])}
          >
            Send again
          </Button>
        ),
    },
  ];
  return (
    <section aria-label={`Delivery to ${target}`}>
      <Group gap="sm">
        <Title order={3} size="h5">
          {target}
        </Title>
        <Text size="xs" c="dimmed" component="div" role="status">
          {countText(accepted)} accepted · {countText(rejected)} refused · pending{" "}
          <Changes counts={pending} />
        </Text>
        <Group gap={6} ml="auto">
          <Button size="compact-xs" variant="subtle" onClick={() => go({ stream: state, view: "preview" })}>
            All answers
          </Button>
          {rejected > 0 && may("snapshots:write") && (
            <Button size="compact-xs" loading={retrying.isPending} onClick={() => retrying.mutate([])}>
              Send all refused again
            </Button>
          )}
        </Group>
      </Group>
      {refused.length === 0 ? (
        <Text c="dimmed">{target} refused no row as it is now.</Text>
      ) : (
        <PlainTable
          label={`Rows that ${target} refused`}
          columns={columns}
          rows={refused}
          keyOf={textOf}
          minWidth={560}
        />
      )}
      {alone.length > 0 && (
        <>
          <Text mt="sm">{target} has rows that the stream no longer has:</Text>
          <PlainTable
            label={`Rows that only ${target} has`}
            columns={[key, { id: "id", header: `Id at ${target}`, cell: (row) => row.target_id }]}
            rows={alone}
            keyOf={textOf}
          />
        </>
      )}
      {!is_whole && <Text c="dimmed">Only the first {countText(LISTED)} rows are listed.</Text>}
    </section>
  );
}
