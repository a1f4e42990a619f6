// Rows from a file into a stream: what the import would do is shown before the job is started that does it.
import { Button, FileInput, Group, Radio, Stack, TagsInput, Text } from "@mantine/core";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type ImportOrder, importRows } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { Dialog } from "@/parts/Dialog";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { tell } from "@/parts/toasts";
import { addImport, isLarge } from "@/uploads/queue";
import { ImportEffect } from "./ImportEffect";
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
  const kind = KINDS[file?.name.split(".").at(-1)?.toLowerCase() ?? ""];
  const isLong = file !== null && (file.size > COUNTED_BYTES_MAX || isLarge(file));
  const unseen = kind && file ? unseenText(kind, isLong) : "";
  const canPreview = file !== null && kind !== undefined && unseen === "";
  const effect = useQuery({
    queryKey: [...tenantKey(place), "import-preview", props.stream, nameOf(file), key, mode],
    queryFn: ({ signal }) => {
      const content = isLong ? (file as File).slice(0, BEGINNING_BYTES) : (file as File);
      const order = { key, mode, kind: kind ?? "csv", isBeginning: isLong };
      return previewImport(place, props.stream, content, order, signal);
    },
    enabled: canPreview,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });

  const importing = useMutation({
    mutationFn: () => importRows(place, props.stream, file as File, { key, mode, kind: kind ?? "csv" }),
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
    addImport(place, { stream: props.stream, key, mode, kind }, file);
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
            label="Rows that the file lacks"
            value={mode}
            onChange={(value) => setMode(value as "upsert" | "full")}
          >
            <Group mt={8}>
              <Radio value="upsert" label="stay" />
              <Radio value="full" label="are deleted (a full extract)" />
            </Group>
          </Radio.Group>
        </div>
        {file && !kind && (
          <Text size="sm" c="var(--mantine-color-error)">
            {file.name} is not a CSV, Parquet, JSON Lines or Arrow file (by its name).
          </Text>
        )}
        {unseen && (
          <Text size="sm" c="dimmed">
            {unseen}
          </Text>
        )}
        {file && kind && isLarge(file) && (
          <Text size="sm" c="dimmed">
            The import starts after the upload. You can use other pages meanwhile; keep this window open.
          </Text>
        )}
        {canPreview && effect.isPending && (
          <LateSkeleton lines={5} label="Computing the effect of the import" />
        )}
        {effect.isError && <ProblemNote error={effect.error} onRetry={() => effect.refetch()} />}
        {canPreview && effect.data && <ImportEffect effect={effect.data} mode={mode} isBeginning={isLong} />}
        {importing.isError && <ProblemNote error={importing.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={props.onClose}>
            Cancel
          </Button>
          <Button
            disabled={!file || !kind || isRefused || effect.isFetching}
            loading={importing.isPending}
            onClick={begin}
          >
            Start the import
          </Button>
        </Group>
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
