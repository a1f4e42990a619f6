// Erasing a person: found in all streams, shown, and after a confirmation gone from every version and file.
import { Button, Checkbox, Group, Progress, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type ErasureOrder, eraseRows } from "@/api/changes";
import { tenantKey } from "@/api/client";
import { asProblem } from "@/api/problem";
import { overviewQuery } from "@/api/queries";
import type { RowErasure, StreamOverview } from "@/api/types";
import { FirstRows } from "@/history/ChangedRows";
import { usePanel } from "@/navigation/panel";
import { Dialog, FormFooter } from "@/parts/dialogs";
import { bytesText, counted, countText } from "@/parts/formats";
import { PlainTable } from "@/parts/PlainTable";
import { inTurn } from "@/parts/page";
import { ProblemNote } from "@/parts/states";
import type { Column } from "@/parts/VirtualGrid";
import { useReason } from "@/session/reason";

type Way = "key" | "where";

interface Found {
  stream: string;
  order: ErasureOrder;
  /** What the dry run says, and once it is erased what became of it. */
  effect: RowErasure;
}

/** What is asked of a stream; null where it cannot have the person. */
function orderOf(way: Way, text: string, { key }: StreamOverview): ErasureOrder | null {
  if (key.length === 0) return null;
  if (way === "where") return { keys: null, where: text };
  let values: unknown = [text];
  if (key.length > 1)
    try {
      values = JSON.parse(text);
    } catch {
      return null;
    }
  if (!Array.isArray(values) || values.length !== key.length) return null;
  return { keys: [Object.fromEntries(key.map((name, at) => [name, values[at]]))], where: null };
}

/** A stream whose columns or types cannot have what is looked for says so; all else is a failure. */
const CANNOT_HAVE = new Set(["MISSING_COLUMN", "BAD_INPUT"]);

export function EraseDialog({ onClose }: { onClose: () => void }) {
  const { place } = usePanel();
  const client = useQueryClient();
  const streams = useQuery(overviewQuery(place)).data?.streams ?? [];
  const reason = useReason();
  const [way, setWay] = useState<Way>("key");
  const [text, setText] = useState("");
  const [typed, setTyped] = useState("");
  const [found, setFound] = useState<readonly Found[]>([]);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const keep = (one: Found) =>
    setFound((before) =>
      [...before.filter(({ stream }) => stream !== one.stream), one].sort((a, b) =>
        a.stream < b.stream ? -1 : 1,
      ),
    );

  const finding = useMutation({
    mutationFn: async () => {
      setFound([]);
      const there = new Set<string>();
      await inTurn(streams, async (one) => {
        const order = orderOf(way, text.trim(), one);
        if (order === null) return;
        try {
          const effect = await eraseRows(place, one.stream, { ...order, dry_run: true }, "only a check");
          // A key may be of earlier versions alone; rows that meet a condition are there now.
          if (way === "key" || effect.rows_erased > 0) keep({ stream: one.stream, order, effect });
          if (effect.rows_erased > 0) there.add(one.stream);
        } catch (error) {
          if (!CANNOT_HAVE.has(asProblem(error).code)) throw error;
        }
      });
      setChosen(there);
    },
  });
  const due = found.filter((one) => chosen.has(one.stream) && !one.effect.committed);
  const done = found.filter((one) => one.effect.committed);
  const erasing = useMutation({
    mutationFn: async () => {
      for (const { stream, order, effect } of due) {
        const condition = { "If-Match": effect.etag ?? '""' };
        const gone = await eraseRows(place, stream, { ...order, message: reason.message }, condition);
        keep({ stream, order, effect: gone });
      }
    },
    onSettled: () => client.invalidateQueries({ queryKey: tenantKey(place) }),
  });
  function find(event: FormEvent) {
    event.preventDefault();
    if (!finding.isPending) finding.mutate();
  }
  const isOver = done.length > 0 && due.length === 0;
  const isBusy = erasing.isPending || isOver;
  const rows = due.reduce((sum, { effect }) => sum + effect.rows_erased, 0);
  const columns: Column<Found>[] = [
    {
      id: "chosen",
      header: "Erase",
      cell: ({ stream, effect }) => (
        <Checkbox
          size="xs"
          aria-label={`Erase from ${stream}`}
          disabled={isBusy || effect.committed}
          checked={chosen.has(stream)}
          onChange={({ currentTarget: { checked } }) =>
            setChosen(new Set([...chosen].filter((one) => one !== stream).concat(checked ? [stream] : [])))
          }
        />
      ),
    },
    { id: "stream", header: "Stream", cell: ({ stream }) => stream },
    { id: "rows", header: "Rows", align: "right", cell: ({ effect }) => countText(effect.rows_erased) },
    { id: "result", header: "Result", cell: ({ effect }) => told(effect) },
  ];
  return (
    <Dialog onClose={onClose} title={`Erase a person from ${place.tenant}`} size="80%">
      <Stack>
        <form onSubmit={find}>
          <Group align="flex-end">
            <SegmentedControl
              size="xs"
              aria-label="How the person is found"
              data={[
                { value: "key", label: "By key" },
                { value: "where", label: "By condition" },
              ]}
              disabled={done.length > 0}
              value={way}
              onChange={(value) => {
                setWay(value as Way);
                setFound([]);
              }}
            />
            <TextInput
              data-autofocus
              required
              flex={1}
              label={way === "key" ? "Key" : "Condition"}
              description={
                way === "key"
                  ? 'Of several columns as a JSON array: ["A-1", 2]'
                  : "As in SQL: Email = 'ann@example.org'"
              }
              disabled={done.length > 0}
              value={text}
              onChange={(event) => {
                setText(event.currentTarget.value);
                setFound([]);
              }}
            />
            <Button
              size="sm"
              type="submit"
              loading={finding.isPending}
              disabled={text.trim() === "" || done.length > 0}
            >
              Find
            </Button>
          </Group>
        </form>
        {finding.isError && <ProblemNote error={finding.error} />}
        {finding.isSuccess && found.length === 0 && (
          <Text role="status">No stream of {place.tenant} has such a row.</Text>
        )}
        {found.length > 0 && (
          <>
            <PlainTable
              label="Streams with the person"
              columns={columns}
              rows={found}
              keyOf={(one) => one.stream}
            />
            {due.map(({ stream, effect }) => (
              <FirstRows
                key={stream}
                label={`Rows of ${stream} that are erased`}
                rows={effect.rows.map((row) => ({ fate: "delete", before: row, after: {}, changed: [] }))}
                keyNames={effect.key}
                total={effect.rows_erased}
              />
            ))}
            {erasing.isPending && (
              <Progress
                aria-label="Streams that are done"
                animated
                value={(100 * (done.length + 0.5)) / (done.length + due.length)}
              />
            )}
          </>
        )}
        {due.length > 0 && (
          <>
            <Text role="alert">
              All earlier versions and tags of {place.tenant} go too, and running jobs cannot commit. Nobody
              can take it back. Texts in other columns and files, exports and backups are not searched.
            </Text>
            {reason.field}
            <TextInput
              size="xs"
              label={`Type ${place.tenant} to confirm`}
              description="The reason stays in the history: name nobody in it."
              value={typed}
              onChange={(event) => setTyped(event.currentTarget.value)}
            />
          </>
        )}
        {isOver ? (
          <Group justify="flex-end">
            <Button size="sm" onClick={onClose}>
              Done
            </Button>
          </Group>
        ) : (
          <FormFooter
            sending={erasing}
            color="red"
            verb={due.length > 0 ? `Erase ${counted(rows, "row")} for good` : "Erase"}
            disabled={due.length === 0 || typed.trim() !== place.tenant || reason.isMissing}
            onAct={erasing.mutate}
            onClose={onClose}
          />
        )}
      </Stack>
    </Dialog>
  );
}

/** Of a dry run what is not reached by it; of an erasure what went, and what is left. */
function told({ committed, left, deliveries, files_deleted, bytes_deleted }: RowErasure): string {
  const targets = Object.keys(deliveries);
  const parts = [
    committed &&
      `erased; ${counted(files_deleted, "file")} of the past deleted (${bytesText(bytes_deleted)})`,
    committed &&
      (left.remaining > 0 ? `${counted(left.remaining, "row")} left: erase again` : "no row is left"),
    left.files.length > 0 && `files that may still have it: ${left.files.join(", ")}`,
    left.elsewhere.length > 0 && `the same key is in ${left.elsewhere.join(", ")}`,
    targets.length > 0 && `targets may have it: ${targets.join(", ")}`,
  ].filter(Boolean);
  return parts.join("; ");
}
