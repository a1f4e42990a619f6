// Somebody saved first: their text on the left, one's own on the right, to be merged line by line.
import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { jsonProblem } from "./json-problem";

const SideBySide = lazy(() => import("./SideBySide"));

interface ConflictDialogProps {
  path: string;
  base: string;
  theirs: string;
  mine: string;
  isSaving: boolean;
  onSave: (merged: string) => void;
  onTakeTheirs: () => void;
  onClose: () => void;
}

export function ConflictDialog(props: ConflictDialogProps) {
  const [merged, setMerged] = useState(props.mine);
  const [left, setLeft] = useState<"theirs" | "base">("theirs");
  const problem = props.path.endsWith(".json") ? jsonProblem(merged) : null;
  return (
    <Modal opened onClose={props.onClose} title={`Somebody saved ${props.path} meanwhile`} size="90%">
      <Stack>
        <Group justify="space-between">
          <Text size="sm">
            {left === "theirs" ? "Left: what they saved." : "Left: what both of you began with."} Right:
            yours, to be edited.
          </Text>
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => setLeft(left === "theirs" ? "base" : "theirs")}
          >
            {left === "theirs" ? "Compare with the beginning" : "Compare with theirs"}
          </Button>
        </Group>
        <div className="editor editor-tall">
          <Suspense fallback={<LateSkeleton />}>
            <SideBySide
              path={props.path}
              left={left === "theirs" ? props.theirs : props.base}
              right={merged}
              onChange={setMerged}
            />
          </Suspense>
        </div>
        {problem && (
          <Text size="sm" c="var(--mantine-color-error)">
            {problem}
          </Text>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={props.onClose}>
            Go on editing
          </Button>
          <Button variant="default" onClick={props.onTakeTheirs}>
            Take theirs
          </Button>
          <Button loading={props.isSaving} disabled={problem !== null} onClick={() => props.onSave(merged)}>
            Save the right side
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
