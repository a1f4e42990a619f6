// A text file in place: typing shows at once what differs from what is kept, saving makes a new version.
//
// JSON is checked while one types; a save that would overwrite somebody else's asks with both side by side.
import { Button, Group, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { readFile, writeFile } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { asProblem } from "@/api/problem";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { tell } from "@/parts/toasts";
import { usePanel } from "@/tenants/panel";
import { jsonProblem } from "./json-problem";

const TextEditor = lazy(() => import("./TextEditor"));
const ConflictDialog = lazy(() => import("./ConflictDialog"));
const PRECONDITION_FAILED = 412;

interface FileEditorProps {
  path: string;
  text: string;
  etag: string;
  isReadOnly: boolean;
  isBehind?: boolean;
  /** Told whenever there begins or ceases to be something that is not saved. */
  onChanged?: (isChanged: boolean) => void;
}

interface Theirs {
  text: string;
  etag: string;
}

export function FileEditor({ path, text, etag, isReadOnly, isBehind = false, onChanged }: FileEditorProps) {
  const { place } = usePanel();
  const client = useQueryClient();
  const [draft, setDraft] = useState(text);
  const [theirs, setTheirs] = useState<Theirs | null>(null);
  const isJson = path.endsWith(".json");
  const problem = isJson ? jsonProblem(draft) : null;
  const isChanged = draft !== text;
  useEffect(() => onChanged?.(isChanged), [isChanged, onChanged]);
  useEffect(() => () => onChanged?.(false), [onChanged]);

  async function refresh() {
    await client.invalidateQueries({ queryKey: tenantKey(place) });
  }

  const saving = useMutation({
    mutationFn: (order: { text: string; etag: string }) => writeFile(place, path, order.text, order.etag),
    onSuccess: async () => {
      setTheirs(null);
      tell(`Saved ${path} as a new version.`);
      onChanged?.(false);
      await refresh();
    },
    onError: async (error) => {
      if (asProblem(error).status !== PRECONDITION_FAILED) return;
      const newest = await readFile(place, path);
      if (newest) setTheirs(newest);
    },
  });
  const canSave = !isReadOnly && isChanged && problem === null && !saving.isPending;
  function save() {
    if (canSave) saving.mutate({ text: draft, etag });
  }
  const isConflict = saving.isError && asProblem(saving.error).status === PRECONDITION_FAILED;

  return (
    <>
      <div className="editor">
        <Suspense fallback={<LateSkeleton />}>
          <TextEditor
            path={path}
            original={text}
            value={draft}
            onChange={setDraft}
            onSave={save}
            isReadOnly={isReadOnly}
          />
        </Suspense>
      </div>
      {saving.isError && !isConflict && <ProblemNote error={saving.error} />}
      {!isReadOnly && (
        <Group justify="space-between">
          <Text size="sm" role="status" c={problem ? "var(--mantine-color-error)" : "dimmed"}>
            {problem ??
              (isBehind
                ? "Somebody saved this file meanwhile. Save shows both texts."
                : isChanged
                  ? "Lines that differ are marked; the old ones stand above them."
                  : isJson
                    ? "Valid JSON"
                    : "")}
          </Text>
          <Group gap="xs">
            <Button size="xs" variant="default" disabled={!isChanged} onClick={() => setDraft(text)}>
              Discard
            </Button>
            <Button
              size="xs"
              disabled={!isChanged || problem !== null}
              loading={saving.isPending}
              onClick={save}
            >
              Save
            </Button>
          </Group>
        </Group>
      )}
      {theirs && (
        <Suspense fallback={null}>
          <ConflictDialog
            path={path}
            base={text}
            theirs={theirs.text}
            mine={draft}
            isSaving={saving.isPending}
            onSave={(merged) => saving.mutate({ text: merged, etag: theirs.etag })}
            onTakeTheirs={() => {
              setTheirs(null);
              saving.reset();
              void refresh();
            }}
            onClose={() => setTheirs(null)}
          />
        </Suspense>
      )}
    </>
  );
}
