// Short notes in the corner: that something failed, and Undo for what happened at once.
import { Button, Group, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { asProblem } from "@/api/problem";
import { CopyText } from "./CopyText";

const UNDO_MS = 10_000;

export function tellProblem(error: unknown): void {
  const problem = asProblem(error);
  notifications.show({
    color: "red",
    title: problem.title,
    message: (
      <>
        {[problem.cause, problem.remedy].filter(Boolean).join(" ")}
        {problem.requestId && (
          <div>
            Request <CopyText text={problem.requestId} label="request id" />
          </div>
        )}
      </>
    ),
    autoClose: UNDO_MS,
    closeButtonProps: { "aria-label": "Close" },
  });
}

export function tell(message: string): void {
  notifications.show({ message, closeButtonProps: { "aria-label": "Close" } });
}

/** Says what happened and offers to take it back for ten seconds. */
export function offerUndo(message: string, undo: () => Promise<unknown>): void {
  const id = notifications.show({
    autoClose: UNDO_MS,
    closeButtonProps: { "aria-label": "Close" },
    message: (
      <Group justify="space-between" wrap="nowrap">
        <Text size="sm">{message}</Text>
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => {
            notifications.hide(id);
            undo().catch(tellProblem);
          }}
        >
          Undo
        </Button>
      </Group>
    ),
  });
}
