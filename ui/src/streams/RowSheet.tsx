// One row in a sheet at the side: all its fields, and each version that touched it, with the way back.
import { ActionIcon, Anchor, Badge, Button, Drawer, Group, Stack, Table, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { IconPencil } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useList } from "@/api/queries";
import type { CellOrigin, RowHistory, RowVersion } from "@/api/types";
import { RestoreRowsDialog } from "@/history/Restore";
import { UndoDialog } from "@/history/Undo";
import { jobOf, makerText, type RowKey } from "@/history/versions";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { useFocusBack } from "@/parts/page";
import { Placeholder } from "@/parts/states";
import { Cell, DiffCell, Moment } from "@/parts/values";
import { useMay } from "@/session/session";
import { CellDialog } from "./CellDialog";
import { rowHistoryQuery, rowOriginQuery } from "./stream-queries";

const FATES = { insert: "Inserted", update: "Changed", delete: "Deleted" } as const;

interface Order {
  version: number;
  isUndo?: boolean;
}

export function RowSheet({ stream, rowKey }: { stream: string; rowKey: string }) {
  const { place, version, go } = usePanel();
  const isNarrow = useMediaQuery("(max-width: 56em)", false, { getInitialValueInEffect: false });
  const [order, setOrder] = useState<Order>();
  useFocusBack();
  const wanted = rowHistoryQuery(place, stream, rowKey, version);
  const { query: history, entries: versions, more } = useList(wanted, (page) => page.versions);
  const first = history.data?.pages[0];
  return (
    <Drawer
      opened
      onClose={() => go({ row: undefined })}
      position="right"
      size={isNarrow ? "100%" : "520px"}
      transitionProps={{ duration: 0 }}
      overlayProps={{ backgroundOpacity: 0.1 }}
      title={`${stream} ${rowKey}`}
      closeButtonProps={{ "aria-label": "Close the row" }}
    >
      {!history.data ? (
        <Placeholder query={history} lines={8} label="Reading the row" />
      ) : (
        <Stack gap="md">
          {first && <Fields history={first} stream={stream} rowKey={rowKey} isPast={version !== undefined} />}
          <section aria-label="Versions of the row">
            <Text fw={600} component="h3">
              Versions that changed it
            </Text>
            {versions.map((one) => (
              <Touched key={one.version} one={one} stream={stream} onRestore={setOrder} />
            ))}
            {history.hasNextPage && (
              <Button mt="xs" loading={history.isFetchingNextPage} onClick={more}>
                Older versions
              </Button>
            )}
            {versions.length === 0 && <Text c="dimmed">None of the kept versions changed this row.</Text>}
            {history.data?.pages.at(-1)?.is_whole === false && (
              <Text size="xs" c="dimmed" mt="xs">
                Older versions of the row were deleted or had another key.
              </Text>
            )}
          </section>
        </Stack>
      )}
      {order && !order.isUndo && first && (
        <RestoreRowsDialog
          stream={stream}
          version={order.version}
          keys={[first.key as RowKey]}
          onClose={() => setOrder(undefined)}
        />
      )}
      {order?.isUndo && first && (
        <UndoDialog
          what={`version ${order.version} in ${stream} ${rowKey}`}
          order={{ version: order.version, only: [stream], keys: [first.key as RowKey] }}
          onClose={() => setOrder(undefined)}
        />
      )}
    </Drawer>
  );
}

interface FieldsProps {
  history: RowHistory;
  stream: string;
  rowKey: string;
  isPast: boolean;
}

function Fields({ history, stream, rowKey, isPast }: FieldsProps) {
  const may = useMay();
  const { place, version } = usePanel();
  const [edited, setEdited] = useState<string>();
  // Its versions are looked through, so it is asked for.
  const [isAsked, setAsked] = useState(false);
  const origin = useQuery({ ...rowOriginQuery(place, stream, rowKey, version), enabled: isAsked });
  const origins = new Map(origin.data?.cells.map((cell) => [cell.column, cell]));
  if (history.row === null)
    return (
      <Text role="status">
        {isPast ? "The row does not exist in this version." : "The row does not exist in the newest version."}
      </Text>
    );
  const canEdit = (name: string, value: unknown) =>
    !isPast &&
    may("snapshots:write") &&
    !(name in history.key) &&
    (value === null || typeof value !== "object");
  return (
    <section aria-label="Values">
      <Table aria-label="Fields" className="row-fields" layout="fixed" withRowBorders={false}>
        <Table.Tbody>
          {Object.entries(history.row).map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row">{name in history.key ? `${name} (key)` : name}</Table.Th>
              <Table.Td>
                <Cell value={value} />
                {canEdit(name, value) && (
                  <ActionIcon
                    size="xs"
                    className="cell-edit"
                    aria-label={`Change ${name}`}
                    onClick={() => setEdited(name)}
                  >
                    <IconPencil size={13} />
                  </ActionIcon>
                )}
                {origins.has(name) && <Origin of={origins.get(name) as CellOrigin} />}
                {edited === name && (
                  <CellDialog
                    stream={stream}
                    rowKey={history.key as RowKey}
                    name={rowKey}
                    column={name}
                    value={value}
                    onClose={() => setEdited(undefined)}
                  />
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {!isAsked && (
        <Button size="compact-xs" onClick={() => setAsked(true)}>
          Where each value comes from
        </Button>
      )}
      {isAsked && !origin.data && <Placeholder query={origin} label="Looking through the versions" />}
    </section>
  );
}

/** The version that gave a cell its value, and where its job had the value from. */
function Origin({ of }: { of: CellOrigin }) {
  return (
    <Text size="xs" c="dimmed">
      {of.version === null || of.timestamp === null ? (
        "older than the versions that are kept"
      ) : (
        <>
          version {of.version} · {makerText({ job_id: of.job_id, who: of.who ?? "" })} ·{" "}
          <Moment at={of.timestamp} isDated />
          {of.script_sha256 && (
            <span title={of.script_sha256}> · script {of.script_sha256.slice(0, 12)}</span>
          )}
          {of.source !== "no_job" && ` · ${of.text}`}
        </>
      )}
    </Text>
  );
}

interface TouchedProps {
  one: RowVersion;
  stream: string;
  onRestore: (order: Order) => void;
}

/** What one version did to the row, and how to bring back what was there before it. */
function Touched({ one, stream, onRestore }: TouchedProps) {
  const { go } = usePanel();
  const may = useMay();
  const { row, version } = one;
  const job = jobOf(one);
  const canWrite = may("snapshots:write");
  return (
    <article className="row-version" aria-label={`Version ${version}`}>
      <Group gap={6}>
        <Button
          size="compact-xs"
          variant="subtle"
          onClick={() =>
            go({
              ...NOTHING_OPEN,
              panel: "history",
              before: Math.max(0, version - 1),
              after: version,
              diff: `stream ${stream}`,
            })
          }
        >
          Version {version}
        </Button>
        <span className="row-fate" data-fate={row.fate}>
          {FATES[row.fate]}
        </span>
        {one.restored !== null && (
          <Badge size="sm" color="gray">
            restore of {one.restored}
          </Badge>
        )}
        <Text size="xs" c="dimmed" component="span">
          <Moment at={one.timestamp} isDated />
          {" by "}
          {job ? (
            <Anchor
              component="button"
              size="xs"
              type="button"
              onClick={() => go({ ...NOTHING_OPEN, panel: "jobs", job })}
            >
              {job}
            </Anchor>
          ) : (
            makerText(one)
          )}
          {job && one.who && `, ${one.who}`}
        </Text>
      </Group>
      {one.message && <Text size="xs">{one.message}</Text>}
      {row.changed.length > 0 && (
        <dl className="row-cells">
          {row.changed.map((name) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <DiffCell row={row} name={name} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      {canWrite && (
        <Group gap={6} mt={4}>
          {one.kind === "commit" && (
            <Button size="compact-xs" onClick={() => onRestore({ version, isUndo: true })}>
              Undo this change…
            </Button>
          )}
          {row.fate !== "insert" && version > 0 && (
            <Button size="compact-xs" onClick={() => onRestore({ version: version - 1 })}>
              Restore this row…
            </Button>
          )}
        </Group>
      )}
    </article>
  );
}
