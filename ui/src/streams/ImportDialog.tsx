// Rows from a file into a stream: what is in the file is shown before the job is started that brings it in.
import { Button, FileInput, Group, Modal, Radio, Stack, Table, TagsInput, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { importRows } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { ProblemNote } from "@/parts/ProblemNote";
import { tell } from "@/parts/toasts";
import { NOTHING_OPEN, usePanel } from "@/tenants/panel";
import { type FilePreview, previewCsv } from "./file-preview";

const HEAD_BYTES = 64 * 1024;
const KINDS: Record<string, string> = {
  csv: "text/csv",
  parquet: "application/vnd.apache.parquet",
  jsonl: "application/x-ndjson",
};

export function ImportDialog(props: { stream: string; streamKey: readonly string[]; onClose: () => void }) {
  const { place, go } = usePanel();
  const client = useQueryClient();
  const [file, setFile] = useState<File | null>(null);
  const [preview, setPreview] = useState<FilePreview | null>(null);
  const [key, setKey] = useState<string[]>([...props.streamKey]);
  const [mode, setMode] = useState<"upsert" | "full">("upsert");
  const kind = KINDS[file?.name.split(".").at(-1) ?? ""];
  const missing = preview ? key.filter((name) => !preview.columns.includes(name)) : [];

  useEffect(() => {
    setPreview(null);
    if (!file?.name.endsWith(".csv")) return;
    void file
      .slice(0, HEAD_BYTES)
      .text()
      .then((text) => setPreview(previewCsv(text, file.size <= HEAD_BYTES)));
  }, [file]);

  const importing = useMutation({
    mutationFn: () => importRows(place, props.stream, file as File, { key, mode, kind: kind ?? "" }),
    onSuccess: async (job) => {
      tell(`The import is job ${job.job_id}.`);
      props.onClose();
      await client.invalidateQueries({ queryKey: tenantKey(place) });
      go({ ...NOTHING_OPEN, panel: "jobs", job: job.job_id });
    },
  });

  return (
    <Modal opened onClose={props.onClose} title={`Import rows into ${props.stream}`} size="xl">
      <Stack>
        <FileInput
          label="File"
          placeholder="CSV, Parquet or JSON Lines"
          accept=".csv,.parquet,.jsonl"
          value={file}
          onChange={setFile}
          required
        />
        <TagsInput
          label="Key"
          description="The columns that say which row is which."
          value={key}
          onChange={setKey}
        />
        <Radio.Group
          label="Rows that the file lacks"
          value={mode}
          onChange={(value) => setMode(value as "upsert" | "full")}
        >
          <Group mt={4}>
            <Radio value="upsert" label="stay" />
            <Radio value="full" label="are deleted (the file is a full extract)" />
          </Group>
        </Radio.Group>
        {preview && <PreviewTable preview={preview} keyNames={key} />}
        {missing.length > 0 && (
          <Text size="sm" c="var(--mantine-color-error)">
            The file has no column {missing.join(", ")}, which the key needs.
          </Text>
        )}
        {file && !kind && (
          <Text size="sm" c="var(--mantine-color-error)">
            {file.name} is none of CSV, Parquet and JSON Lines by its name.
          </Text>
        )}
        {importing.isError && <ProblemNote error={importing.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={props.onClose}>
            Cancel
          </Button>
          <Button
            disabled={!file || !kind || missing.length > 0}
            loading={importing.isPending}
            onClick={() => importing.mutate()}
          >
            Start the import
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function PreviewTable({ preview, keyNames }: { preview: FilePreview; keyNames: readonly string[] }) {
  return (
    <Table.ScrollContainer minWidth={preview.columns.length * 110}>
      <Table aria-label="The file's first rows">
        <Table.Thead>
          <Table.Tr>
            {preview.columns.map((name) => (
              <Table.Th key={name}>
                {name}
                {keyNames.includes(name) && " (key)"}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {preview.rows.map((row) => (
            <Table.Tr key={row.join("\u0000")}>
              {row.map((value, index) => (
                <Table.Td key={preview.columns[index]}>{value}</Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
