// The question before many items, a folder or a stream go: it names them and the rows.
import { Button, Group, List, Modal, Stack, Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { allFilesQuery } from "@/api/queries";
import { usePanel } from "@/navigation/panel";
import { countText, nameText } from "@/parts/formats";
import type { Deletion } from "./useDeletion";

const NAMED_MAX = 12;

export function DeleteDialog({ deletion }: { deletion: Deletion }) {
  const { asked } = deletion;
  const { place } = usePanel();
  const folders = asked.flatMap((item) => (item.kind === "folder" ? [item.path] : []));
  const contents = useQueries({ queries: folders.map((folder) => allFilesQuery(place, folder)) });
  const inFolders = (path: string) => {
    const content = contents[folders.indexOf(path)]?.data;
    if (!content) return "folder with its content";
    const count = content.files.length;
    return `folder, ${content.isWhole ? "" : "at least "}${countText(count)} ${count === 1 ? "file" : "files"}`;
  };
  const files =
    asked.filter((item) => item.kind === "file").length +
    contents.reduce((sum, content) => sum + (content.data?.files.length ?? 0), 0);
  const isAtLeast = contents.some((content) => !content.data?.isWhole);
  const streams = asked.filter((item) => item.kind === "stream").length;
  const subject = [
    streams > 0 && `${countText(streams)} ${streams === 1 ? "stream" : "streams"}`,
    (files > 0 || folders.length > 0) &&
      `${isAtLeast ? "at least " : ""}${countText(files)} ${files === 1 ? "file" : "files"}`,
  ].filter(Boolean);
  const rows = asked.reduce((sum, item) => sum + (item.kind === "stream" ? item.stream.rows : 0), 0);
  return (
    <Modal opened={asked.length > 0} onClose={deletion.dismiss} title={`Delete ${subject.join(" and ")}?`}>
      <Stack>
        <List size="sm">
          {asked.slice(0, NAMED_MAX).map((item) => (
            <List.Item key={item.key}>
              {nameText(item.name)}
              {item.kind === "stream" && ` (stream, ${countText(item.stream.rows)} rows)`}
              {item.kind === "folder" && ` (${inFolders(item.path)})`}
            </List.Item>
          ))}
          {asked.length > NAMED_MAX && <List.Item>and {countText(asked.length - NAMED_MAX)} more</List.Item>}
        </List>
        <Text size="sm" c="dimmed">
          {rows > 0 && `${countText(rows)} rows will be deleted. `}You can restore them from the History tab.
        </Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={deletion.dismiss}>
            Cancel
          </Button>
          <Button color="red" data-autofocus loading={deletion.isRunning} onClick={deletion.confirm}>
            Delete
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
