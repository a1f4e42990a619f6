// Short notes in the corner: that something failed, and Undo for what happened at once.
import { Button, Group, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { asProblem } from "@/api/problem";
import { CopyText } from "./values";

const UNDO_MS = 10_000;

/** What can be done about a problem. */
interface Way {
  verb: string;
  act: () => Promise<unknown>;
}

export function tellProblem(error: unknown): void {
  offerWay(error);
}

/** Tells a problem and offers what can be done about it. */
export function offerWay(error: unknown, way?: Way): void {
  const problem = asProblem(error);
  const id = notifications.show({
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
        {way && (
          <Button
            onClick={() => {
              notifications.hide(id);
              way.act().catch(tellProblem);
            }}
          >
            {way.verb}
          </Button>
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

let offered: { id: string; undo: () => void } | undefined;

/** Takes back what the newest note offers to take back, as long as it is there. */
export function undoLast(): void {
  offered?.undo();
}

/** Says what happened and offers to take it back for ten seconds, by its button or by Ctrl+Z. */
export function offerUndo(message: string, undo: () => Promise<unknown>): void {
  const id = notifications.show({
    autoClose: UNDO_MS,
    closeButtonProps: { "aria-label": "Close" },
    onClose: () => {
      if (offered?.id === id) offered = undefined;
    },
    message: (
      <Group justify="space-between" wrap="nowrap">
        <Text>{message}</Text>
        <Button title="Ctrl+Z" onClick={() => act()}>
          Undo
        </Button>
      </Group>
    ),
  });
  function act() {
    offered = undefined;
    notifications.hide(id);
    undo().catch(tellProblem);
  }
  offered = { id, undo: act };
}
