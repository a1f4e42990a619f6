// Asks before what was typed is left: by a link, Back, a closed panel, another tab, or a reload.
import { Button, Group, Text } from "@mantine/core";
import { useBlocker } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Dialog } from "@/parts/Dialog";
import type { PanelSearch } from "./search";

interface LeaveDialogProps {
  title: string;
  isUnsaved: boolean;
  /** Whether the typed text is lost by leaving. */
  isLost: boolean;
  /** What else of the address may change without leaving, if anything does. */
  isSamePlace: (current: PanelSearch, next: PanelSearch) => boolean;
  onDiscard: () => void;
  children: ReactNode;
}

export function LeaveDialog(props: LeaveDialogProps) {
  const leaving = useBlocker({
    shouldBlockFn: ({ current, next }) =>
      props.isUnsaved &&
      (current.pathname !== next.pathname ||
        !props.isSamePlace(current.search as PanelSearch, next.search as PanelSearch)),
    enableBeforeUnload: () => props.isUnsaved,
    withResolver: true,
  });
  if (leaving.status !== "blocked") return null;
  return (
    <Dialog onClose={leaving.reset} title={props.title} size="lg" zIndex={300}>
      <Text size="sm">{props.children}</Text>
      <Group justify="flex-end" mt="md">
        <Button
          variant="default"
          onClick={() => {
            props.onDiscard();
            leaving.proceed();
          }}
        >
          Discard and leave
        </Button>
        {!props.isLost && (
          <Button variant="default" onClick={leaving.proceed}>
            Leave, keep the draft
          </Button>
        )}
        <Button data-autofocus onClick={leaving.reset}>
          Stay
        </Button>
      </Group>
    </Dialog>
  );
}
