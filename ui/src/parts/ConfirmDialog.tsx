// A question before something ends: what it means, Cancel, and the verb in red.
import { Button, Group, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Dialog } from "./Dialog";

interface ConfirmDialogProps {
  title: string;
  verb: string;
  children: ReactNode;
  isSending: boolean;
  onConfirm: () => void;
  onClose: () => void;
}

export function ConfirmDialog({ title, verb, children, isSending, onConfirm, onClose }: ConfirmDialogProps) {
  return (
    <Dialog onClose={onClose} title={title}>
      <Text size="sm">{children}</Text>
      <Group justify="flex-end" mt="md">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button color="red" data-autofocus loading={isSending} onClick={onConfirm}>
          {verb}
        </Button>
      </Group>
    </Dialog>
  );
}
