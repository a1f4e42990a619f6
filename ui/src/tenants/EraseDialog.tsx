// Erasing a person: looked for in all streams, shown, and after a confirmation gone from every version and file.
import { Button, Checkbox, Group, Progress, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type ErasureOrder, eraseRows } from "@/api/changes";
import { tenantKey } from "@/api/client";
import { asProblem, PRECONDITION_FAILED } from "@/api/problem";
import { overviewQuery } from "@/api/queries";
import type { RowErasure } from "@/api/types";
import { FirstRows } from "@/history/ChangedRows";
import { usePanel } from "@/navigation/panel";
import { Dialog, FormFooter } from "@/parts/dialogs";
import { bytesText, counted, countText } from "@/parts/formats";
import { PlainTable } from "@/parts/PlainTable";
import { inTurn } from "@/parts/page";
import { ProblemNote } from "@/parts/states";
import type { Column } from "@/parts/VirtualGrid";
import { useReason } from "@/session/reason";
import { CANNOT_HAVE, type Found, haveOneKey, orderOf, ownerOf, tickedAtFirst, type Way } from "./erasure";

interface Searched {
  found: readonly Found[];
  /** The streams that were not searched, and why. */
  skipped: readonly (readonly [string, string])[];
  searched: number;
  ticked: ReadonlySet<string>;
}

export function EraseDialog({ onClose }: { onClose: () => void }) {
  const { place } = usePanel();
  const client = useQueryClient();
  const reason = useReason();
  const [way, setWay] = useState<Way>("key");
  const [text, setText] = useState("");
  const [typed, setTyped] = useState("");
  const [ticked, setTicked] = useState<ReadonlySet<string> | null>(null);
  /** What became of streams after they were found. */
  const [later, setLater] = useState<ReadonlyMap<string, RowErasure>>(new Map());
  const preview = (stream: string, order: ErasureOrder) =>
    eraseRows(place, stream, { ...order, dry_run: true }, "only a check");
  const keep = (stream: string, effect: RowErasure) =>
    setLater((before) => new Map([...before, [stream, effect]]));

  const finding = useMutation({
    mutationFn: async (): Promise<Searched> => {
      const { streams } = await client.fetchQuery({ ...overviewQuery(place), staleTime: 0 });
      const found: Found[] = [];
      const skipped: [string, string][] = [];
      await inTurn(streams, async (one) => {
        const order = orderOf(way, text.trim(), one);
        if (typeof order === "string") {
          skipped.push([one.stream, order]);
          return;
        }
        try {
          const effect = await preview(one.stream, order);
          // A key may be of earlier versions alone; rows that meet a condition are there now.
          if (way === "key" || effect.rows_erased > 0) found.push({ stream: one.stream, order, effect });
        } catch (error) {
          const why = CANNOT_HAVE[asProblem(error).code];
          if (why === undefined) throw error;
          skipped.push([one.stream, why]);
        }
      });
      return {
        found: found.sort((one, other) => (one.stream < other.stream ? -1 : 1)),
        skipped: skipped
          .filter(([stream]) => !ownerOf(found, stream))
          .sort(([one], [other]) => (one < other ? -1 : 1)),
        searched: streams.length - skipped.length,
        ticked: tickedAtFirst(way, found),
      };
    },
  });
  const found = (finding.data?.found ?? []).map((one) => ({
    ...one,
    effect: later.get(one.stream) ?? one.effect,
  }));
  const chosen = ticked ?? finding.data?.ticked ?? new Set<string>();
  const due = found.filter((one) => chosen.has(one.stream) && !one.effect.committed);
  const done = found.filter((one) => one.effect.committed);
  const erasing = useMutation({
    mutationFn: async () => {
      for (const { stream, order, effect } of due) {
        const condition = { "If-Match": effect.etag ?? '""' };
        try {
          keep(stream, await eraseRows(place, stream, { ...order, message: reason.message }, condition));
        } catch (error) {
          if (asProblem(error).status === PRECONDITION_FAILED) keep(stream, await preview(stream, order));
          throw error;
        }
        for (const state of found.filter((one) => Object.hasOwn(effect.deliveries, one.stream)))
          keep(state.stream, await preview(state.stream, state.order));
      }
    },
    onSettled: () => client.invalidateQueries({ queryKey: tenantKey(place) }),
  });
  /** What is erased is what was found by the very words that stand in the fields. */
  function forget() {
    setTicked(null);
    setLater(new Map());
    finding.reset();
    erasing.reset();
  }
  function find(event: FormEvent) {
    event.preventDefault();
    if (isFixed) return;
    forget();
    finding.mutate();
  }
  const isOver = done.length > 0 && due.length === 0 && !erasing.isPending;
  const isFixed = finding.isPending || erasing.isPending || (done.length > 0 && !erasing.isError);
  /** The stream with which a delivery's state goes, or went. */
  const ownerAmong = (stream: string) => ownerOf(found, stream);
  const going = found.filter((one) => due.includes(one) || due.includes(ownerAmong(one.stream) ?? one));
  const rows = going.reduce((sum, { effect }) => sum + effect.rows_erased, 0);
  const columns: Column<Found>[] = [
    {
      id: "chosen",
      header: "Erase",
      cell: ({ stream, effect }) => (
        <Checkbox
          size="xs"
          aria-label={`Erase from ${stream}`}
          disabled={erasing.isPending || effect.committed || ownerAmong(stream)?.effect.committed === false}
          checked={chosen.has(stream)}
          onChange={({ currentTarget: { checked } }) =>
            setTicked(new Set([...chosen].filter((one) => one !== stream).concat(checked ? [stream] : [])))
          }
        />
      ),
    },
    { id: "stream", header: "Stream", cell: ({ stream }) => stream },
    { id: "key", header: "Key", cell: ({ effect }) => effect.key.join(", ") },
    { id: "rows", header: "Rows", align: "right", cell: ({ effect }) => countText(effect.rows_erased) },
    { id: "result", header: "Result", cell: ({ stream, effect }) => told(effect, ownerAmong(stream)) },
  ];
  return (
    <Dialog
      onClose={onClose}
      title={`Erase a person from ${place.tenant}`}
      size="80%"
      closeOnEscape={!erasing.isPending}
      closeOnClickOutside={!erasing.isPending}
      withCloseButton={!erasing.isPending}
    >
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
              disabled={isFixed}
              value={way}
              onChange={(value) => {
                setWay(value as Way);
                forget();
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
              disabled={isFixed}
              value={text}
              onChange={(event) => {
                setText(event.currentTarget.value);
                forget();
              }}
            />
            <Button
              size="sm"
              type="submit"
              loading={finding.isPending}
              disabled={text.trim() === "" || isFixed}
            >
              Find
            </Button>
          </Group>
        </form>
        {finding.isError && <ProblemNote error={finding.error} />}
        {finding.data && (found.length === 0 || finding.data.skipped.length > 0) && (
          <Text role="status">{searchedText(finding.data, place.tenant)}</Text>
        )}
        {way === "key" && !haveOneKey(found.filter(({ effect }) => effect.rows_erased > 0)) && (
          <Text role="status">
            The streams have different key columns, so the same key may be of something else: tick those with
            the person.
          </Text>
        )}
        {found.length > 0 && (
          <>
            <PlainTable
              label="Streams with the person"
              columns={columns}
              rows={found}
              keyOf={(one) => one.stream}
            />
            {going.map(({ stream, effect }) => (
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
            canLeave={!erasing.isPending}
            disabled={due.length === 0 || typed.trim() !== place.tenant || reason.isMissing}
            onAct={erasing.mutate}
            onClose={onClose}
          />
        )}
      </Stack>
    </Dialog>
  );
}

/** What a search did not find, and where it did not look. */
function searchedText({ found, skipped, searched }: Searched, tenant: string): string {
  const parts = [
    found.length === 0 &&
      (skipped.length === 0
        ? `No stream of ${tenant} has such a row.`
        : `No such row in the ${counted(searched, "stream")} searched.`),
    skipped.length > 0 && `Not searched: ${skipped.map(([stream, why]) => `${stream} (${why})`).join(", ")}.`,
  ].filter(Boolean);
  return parts.join(" ");
}

/** Of a dry run what is not reached by it; of an erasure what went, and what is left. */
function told(effect: RowErasure, owner: Found | undefined): string {
  const { committed, left, deliveries, files_deleted, bytes_deleted } = effect;
  const targets = Object.keys(deliveries);
  const parts = [
    owner && !owner.effect.committed && `goes with ${owner.stream}`,
    owner?.effect.committed && effect.rows_erased === 0 && `went with ${owner.stream}`,
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
