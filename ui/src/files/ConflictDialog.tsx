// Somebody saved first: their text on the left, both texts joined on the right, to be mended line by line.
import { Button, Group, Stack, Text } from "@mantine/core";
import { lazy, Suspense, useMemo, useState } from "react";
import { jsonProblem } from "@/api/file-text";
import { Dialog } from "@/parts/dialogs";
import { LateSkeleton } from "@/parts/states";
import { type Joined, joined } from "./merge";

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

export default function ConflictDialog(props: ConflictDialogProps) {
  const both = useMemo(
    () => joined(props.base, props.theirs, props.mine),
    [props.base, props.theirs, props.mine],
  );
  const [merged, setMerged] = useState(both.text);
  const [left, setLeft] = useState<"theirs" | "base">("theirs");
  const problem = props.path.endsWith(".json") ? jsonProblem(merged) : null;
  return (
    <Dialog onClose={props.onClose} title={`${props.path} was changed while you edited it`} size="90%">
      <Stack>
        <Group justify="space-between">
          <Text>
            {left === "theirs" ? "Left: the saved text." : "Left: the text before both changes."}{" "}
            {toldRight(both)}
          </Text>
          <Button onClick={() => setLeft(left === "theirs" ? "base" : "theirs")}>
            {left === "theirs" ? "Compare with the original" : "Compare with the saved text"}
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
        {problem && <Text c="var(--mantine-color-error)">{problem}</Text>}
        <Group justify="flex-end">
          <Button size="sm" onClick={props.onClose}>
            Continue editing
          </Button>
          <Button size="sm" onClick={props.onTakeTheirs}>
            Use the saved text
          </Button>
          <Button
            size="sm"
            variant="filled"
            loading={props.isSaving}
            disabled={problem !== null}
            onClick={() => props.onSave(merged)}
          >
            Save the right text
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

function toldRight({ taken, conflicts }: Joined): string {
  if (conflicts === 0 && taken > 0) return "Right: both changes, which are in different lines.";
  if (conflicts === 0) return "Right: your text, which already contains all saved changes.";
  const places = conflicts === 1 ? "One place was changed" : `${conflicts} places were changed`;
  return `Right: ${taken > 0 ? "both changes" : "your text"}. ${places} in both texts; your lines are used there.`;
}
