// The question before many items, a folder or a stream go: it names them and the rows.
import { Button, Group, List, Modal, Stack, Text } from "@mantine/core";
import { countText, nameText } from "@/parts/formats";
import type { Deletion } from "./useDeletion";

const NAMED_MAX = 12;

export function DeleteDialog({ deletion }: { deletion: Deletion }) {
  const { asked } = deletion;
  const rows = asked.reduce((sum, item) => sum + (item.kind === "stream" ? item.stream.rows : 0), 0);
  return (
    <Modal
      opened={asked.length > 0}
      onClose={deletion.dismiss}
      title={`Delete ${countText(asked.length)} ${asked.length === 1 ? "item" : "items"}?`}
    >
      <Stack>
        <List size="sm">
          {asked.slice(0, NAMED_MAX).map((item) => (
            <List.Item key={item.key}>
              {nameText(item.name)}
              {item.kind === "stream" && ` (stream, ${countText(item.stream.rows)} rows)`}
              {item.kind === "folder" && " (folder with its content)"}
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
