// Rows from a file into a stream: what the import would do is shown before the job is started that does it.
import { Alert, FileInput, Group, Radio, Stack, TagsInput, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type ImportOrder, importRows, unchangedStream } from "@/api/changes";
import { tenantKey } from "@/api/client";
import type { ImportPreview } from "@/api/types";
import { ChangedRows } from "@/history/ChangedRows";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { Dialog, FormFooter } from "@/parts/dialogs";
import { countText } from "@/parts/formats";
import { Placeholder } from "@/parts/states";
import { tell } from "@/parts/toasts";
import { useReason } from "@/session/reason";
import { addImport, isLarge } from "@/uploads/queue";
import { previewImport } from "./stream-queries";

// The service counts the effect of files up to this size; of longer ones it is shown the beginning.
const COUNTED_BYTES_MAX = 16 * 1024 * 1024;
const BEGINNING_BYTES = 256 * 1024;
const KINDS: Readonly<Record<string, ImportOrder["kind"]>> = {
  csv: "csv",
  parquet: "parquet",
  jsonl: "jsonl",
  ndjson: "jsonl",
  arrow: "arrow",
  arrows: "arrow",
};

export function ImportDialog(props: { stream: string; streamKey: readonly string[]; onClose: () => void }) {
  const { place, go } = usePanel();
  const client = useQueryClient();
  const [file, setFile] = useState<File | null>(null);
  const [key, setKey] = useState<string[]>([...props.streamKey]);
  const [mode, setMode] = useState<"upsert" | "full">("upsert");
  const { message, field: reason, isMissing } = useReason();
  const kind = KINDS[file?.name.split(".").at(-1)?.toLowerCase() ?? ""];
  const isLong = file !== null && (file.size > COUNTED_BYTES_MAX || isLarge(file));
  const unseen = kind && file ? unseenText(kind, isLong) : "";
  const canPreview = file !== null && kind !== undefined && unseen === "";
  const shown = useQuery({
    queryKey: [...tenantKey(place), "import-condition", props.stream],
    queryFn: () => unchangedStream(place, props.stream),
  });
  const condition = shown.data ?? { "If-None-Match": "*" };
  const effect = useQuery({
    queryKey: [...tenantKey(place), "import-preview", props.stream, nameOf(file), key, mode],
    queryFn: ({ signal }) => {
      const content = isLong ? (file as File).slice(0, BEGINNING_BYTES) : (file as File);
      const order = { key, mode, kind: kind ?? "csv", message, isBeginning: isLong };
      return previewImport(place, props.stream, content, order, signal);
    },
    enabled: canPreview,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });

  const importing = useMutation({
    mutationFn: () =>
      importRows(place, props.stream, file as File, { key, mode, kind: kind ?? "csv", message, condition }),
    onSuccess: async (job) => {
      tell(`The import is job ${job.job_id}.`);
      props.onClose();
      await client.invalidateQueries({ queryKey: tenantKey(place) });
      go({ ...NOTHING_OPEN, panel: "jobs", job: job.job_id });
    },
  });
  /** A file that is too large for one request is sent first, as a row among the uploads. */
  function begin() {
    if (!file || !kind) return;
    if (!isLarge(file)) return importing.mutate();
    addImport(place, { stream: props.stream, key, mode, kind, message, condition }, file);
    props.onClose();
  }
  const isRefused = effect.data?.problem != null || effect.isError;

  return (
    <Dialog onClose={props.onClose} title={`Import rows into ${props.stream}`} size="80%">
      <Stack>
        <div className="import-order">
          <FileInput
            label="File"
            placeholder="CSV, Parquet, JSON Lines or Arrow"
            accept={Object.keys(KINDS)
              .map((ending) => `.${ending}`)
              .join(",")}
            value={file}
            onChange={setFile}
            required
          />
          <TagsInput
            label="Key"
            placeholder={key.length === 0 ? "The columns that identify a row" : ""}
            value={key}
            onChange={setKey}
          />
          <Radio.Group
            label="Stored rows that are not in the file"
            value={mode}
            onChange={(value) => setMode(value as "upsert" | "full")}
          >
            <Group mt={8}>
              <Radio value="upsert" label="Keep" />
              <Radio value="full" label="Delete (the file is a full extract)" />
            </Group>
          </Radio.Group>
        </div>
        {file && !kind && (
          <Text c="var(--mantine-color-error)">
            {file.name} is not a CSV, Parquet, JSON Lines or Arrow file (by its name).
          </Text>
        )}
        {unseen && <Text c="dimmed">{unseen}</Text>}
        {file && kind && isLarge(file) && (
          <Text c="dimmed">
            The import starts after the upload. You can use other pages meanwhile; keep this window open.
          </Text>
        )}
        {canPreview && !effect.data && (
          <Placeholder query={effect} lines={5} label="Computing the effect of the import" />
        )}
        {canPreview && effect.data && <ImportEffect effect={effect.data} mode={mode} isBeginning={isLong} />}
        {reason}
        <FormFooter
          sending={importing}
          verb="Start the import"
          disabled={!file || !kind || isRefused || effect.isFetching || isMissing}
          onAct={begin}
          onClose={props.onClose}
        />
      </Stack>
    </Dialog>
  );
}

/** Why nothing can be told of a file before its import; "" where something can. */
function unseenText(kind: ImportOrder["kind"], isLong: boolean): string {
  if ((kind === "parquet" || kind === "arrow") && isLong)
    return "A file of this type and size has no preview. The job counts its rows.";
  return "";
}

/** Another file, or the same one changed since, is another preview. */
function nameOf(file: File | null): string {
  return file === null ? "" : `${file.name} ${file.size} ${file.lastModified}`;
}

const FATE_TEXTS = {
  known: "",
  new: "new column",
  "other type": "another type than the stream's",
  "not in the file": "not in the file: keeps its values",
} as const;

interface ImportEffectProps {
  effect: ImportPreview;
  mode: "upsert" | "full";
  /** Whether only the beginning of the file was looked at. */
  isBeginning: boolean;
}

/** What an import would do: rows by what becomes of them, columns that are not as they were, some rows. */
function ImportEffect({ effect, mode, isBeginning }: ImportEffectProps) {
  return (
    <>
      {effect.problem && (
        <Alert
          color="red"
          variant="light"
          role="alert"
          icon={<IconAlertTriangle size={18} />}
          title={effect.problem.title}
        >
          <Text>{remedyOf(effect.problem)}</Text>
        </Alert>
      )}
      {effect.counts ? (
        <dl className="import-counts">
          <Count name="New" count={effect.counts.inserted} mark="mark-new" />
          <Count name="Updated" count={effect.counts.updated} mark="mark-changed" />
          <Count name="Unchanged" count={effect.counts.unchanged} mark="" />
          {mode === "full" && <Count name="Deleted" count={effect.counts.deleted} mark="mark-gone" />}
        </dl>
      ) : (
        effect.uncounted && (
          <Text c="dimmed" role="status">
            {effect.uncounted}
          </Text>
        )
      )}
      <Columns effect={effect} isBeginning={isBeginning} />
      {effect.examples.length > 0 && (
        <ChangedRows isShort label="Rows that change" rows={effect.examples} keyNames={effect.key} />
      )}
    </>
  );
}

function Count({ name, count, mark }: { name: string; count: number; mark: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className={count > 0 ? mark : "dim"}>{countText(count)}</dd>
    </div>
  );
}

function Columns({ effect, isBeginning }: { effect: ImportPreview; isBeginning: boolean }) {
  const odd = effect.columns.filter((one) => one.fate !== "known");
  const known = effect.columns.length - odd.length;
  return (
    <div>
      <Text>
        {isBeginning && "The first "}
        {countText(effect.rows)} rows{isBeginning && " have"}
        {!isBeginning && " of"} {countText(effect.columns.filter((one) => one.file_type !== null).length)}{" "}
        columns
        {effect.key.length > 0 && `, by ${effect.key.join(", ")}`}.{" "}
        {odd.length === 0 ? "All columns match the stream." : `${countText(known)} match the stream.`}
      </Text>
      {odd.length > 0 && (
        <ul className="import-columns">
          {odd.map((one) => (
            <li key={one.name}>
              <span className={one.fate === "other type" ? "mark-gone" : undefined}>
                <strong>{one.name}</strong> {FATE_TEXTS[one.fate]}
              </span>{" "}
              <span className="dim mono">
                {one.fate === "other type"
                  ? `${one.stream_type} → ${one.file_type}`
                  : (one.file_type ?? one.stream_type)}
              </span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The library's remedy is an option of a call, which nobody makes here. */
function remedyOf(problem: NonNullable<ImportPreview["problem"]>): string {
  if (problem.code === "TOO_MANY_DELETIONS")
    return "The file may be truncated or filtered. If the deletions are intended, import it in a script with the option that allows them.";
  return `${problem.cause} ${problem.remedy}`;
}
