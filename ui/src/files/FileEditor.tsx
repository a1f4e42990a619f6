// A text file in place: typing shows at once what differs from what is kept, saving makes a new version.
//
// JSON is checked while one types; a save that would overwrite somebody else's asks with both side by side.
import { Alert, Button, Group, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useBlocker } from "@tanstack/react-router";
import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { readFile, writeFile } from "@/api/changes";
import { tenantKey } from "@/api/client";
import { jsonProblem } from "@/api/file-text";
import { asProblem, PRECONDITION_FAILED, SIGNED_OUT } from "@/api/problem";
import { usePanel } from "@/navigation/panel";
import type { PanelSearch } from "@/navigation/search";
import { Dialog } from "@/parts/dialogs";
import { LateSkeleton, ProblemNote } from "@/parts/states";
import { tell } from "@/parts/toasts";
import { Moment } from "@/parts/values";
import { useReason } from "@/session/reason";
import { useDraft } from "./drafts";

const TextEditor = lazy(() => import("./TextEditor"));
const ConflictDialog = lazy(() => import("./ConflictDialog"));

interface FileEditorProps {
  path: string;
  text: string;
  etag: string;
  isReadOnly: boolean;
  /** What is typed into a sealed file stays in the page. */
  isSealed: boolean;
  isBehind?: boolean;
  /** Told whenever there begins or ceases to be something that is not saved. */
  onChanged?: (isChanged: boolean) => void;
}

/** Two texts that began as the same one and are to become one again. */
interface Joining {
  base: string;
  theirs: string;
  mine: string;
  etag: string;
}

interface Order {
  text: string;
  etag: string;
  /** What the editor had at that moment. */
  typed: string;
}

export function FileEditor({
  path,
  text,
  etag,
  isReadOnly,
  isSealed,
  isBehind = false,
  onChanged,
}: FileEditorProps) {
  const { place } = usePanel();
  const client = useQueryClient();
  const typed = useDraft({ path, text, etag, isKept: !isReadOnly && !isSealed });
  const draft = typed.text;
  const [joining, setJoining] = useState<Joining | null>(null);
  const { message, field: reason, isMissing } = useReason();
  const isJson = path.endsWith(".json");
  const problem = isJson ? jsonProblem(draft) : null;
  const isChanged = draft !== text;
  useEffect(() => onChanged?.(isChanged), [isChanged, onChanged]);
  useEffect(() => () => onChanged?.(false), [onChanged]);

  async function refresh() {
    await client.invalidateQueries({ queryKey: tenantKey(place) });
  }

  const saving = useMutation({
    mutationFn: (order: Order) => writeFile(place, path, { ...order, message }),
    onSuccess: async (newEtag, order) => {
      setJoining(null);
      typed.onSaved(order.typed, order.text, newEtag);
      tell(`Saved ${path} as a new version.`);
      onChanged?.(false);
      await refresh();
    },
    onError: async (error) => {
      if (asProblem(error).status !== PRECONDITION_FAILED) return;
      const newest = await readFile(place, path);
      if (newest?.encoding === "UTF-8")
        setJoining({ base: text, theirs: newest.text, mine: draft, etag: newest.etag });
    },
  });
  const canSave = !isReadOnly && isChanged && problem === null && !saving.isPending && !isMissing;
  function save() {
    if (canSave) saving.mutate({ text: draft, etag, typed: draft });
  }
  const isTold =
    saving.isError && ![SIGNED_OUT, PRECONDITION_FAILED].includes(asProblem(saving.error).status);
  const isUnsaved = isChanged && !(saving.isSuccess && saving.variables.typed === draft);

  return (
    <>
      {typed.earlier && (
        <Alert color="yellow" title="This file has an unsaved draft." mb="xs">
          <Group gap="xs">
            <span>
              You typed it <Moment at={new Date(typed.earlier.at).toISOString()} />; the file was changed
              later.
            </span>
            <Button
              variant="filled"
              onClick={() => {
                const { base = "", text: mine = "" } = typed.earlier ?? {};
                setJoining({ base, theirs: text, mine, etag });
              }}
            >
              Show both
            </Button>
            <Button onClick={typed.forget}>Discard draft</Button>
          </Group>
        </Alert>
      )}
      <div className="editor">
        <Suspense fallback={<LateSkeleton />}>
          <TextEditor
            path={path}
            original={text}
            value={draft}
            onChange={typed.set}
            onSave={save}
            // What is typed now would take the place of the earlier draft.
            isReadOnly={isReadOnly || typed.earlier !== undefined}
          />
        </Suspense>
      </div>
      {isTold && <ProblemNote error={saving.error} />}
      {!isReadOnly && (
        <Group justify="space-between">
          <Text role="status" c={problem ? "var(--mantine-color-error)" : "dimmed"}>
            {problem ??
              (isBehind ? (
                "This file was changed while you edited it. Save shows both texts."
              ) : typed.restoredFrom !== undefined ? (
                <>
                  This is your draft, typed <Moment at={new Date(typed.restoredFrom).toISOString()} />. It is
                  not saved.
                </>
              ) : isChanged ? (
                "Changed lines are marked; the old line is above each."
              ) : isJson ? (
                "Valid JSON"
              ) : (
                ""
              ))}
          </Text>
          <Group gap="xs" align="flex-end">
            {isChanged && reason}
            <Button size="xs" disabled={!isChanged} onClick={() => typed.set(text)}>
              Discard
            </Button>
            <Button
              variant="filled"
              size="xs"
              disabled={!isChanged || problem !== null || isMissing}
              loading={saving.isPending}
              onClick={save}
            >
              Save
            </Button>
          </Group>
        </Group>
      )}
      <LeaveDialog
        title={`${path} has unsaved changes`}
        isUnsaved={isUnsaved}
        isLost={typed.isLost}
        isSamePlace={isSameFile}
        onDiscard={typed.forget}
      >
        {typed.isLost
          ? isSealed
            ? "Drafts of sealed files are not kept in the browser: your changes are lost when you leave."
            : "The text is too long for a draft in the browser: your changes are lost when you leave."
          : "The draft stays in this browser until you save it, discard it or sign out."}
      </LeaveDialog>
      {joining && (
        <Suspense fallback={null}>
          <ConflictDialog
            path={path}
            base={joining.base}
            theirs={joining.theirs}
            mine={joining.mine}
            isSaving={saving.isPending}
            onSave={(merged) => saving.mutate({ text: merged, etag: joining.etag, typed: draft })}
            onTakeTheirs={() => {
              setJoining(null);
              saving.reset();
              typed.set(text);
              typed.forget();
              void refresh();
            }}
            onClose={() => setJoining(null)}
          />
        </Suspense>
      )}
    </>
  );
}

const OPENED = ["env", "panel", "file", "v", "as"] as const;

function isSameFile(current: PanelSearch, next: PanelSearch): boolean {
  return OPENED.every((name) => current[name] === next[name]);
}

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

/** Asks before what was typed is left: by a link, Back, a closed panel, another tab, or a reload. */
function LeaveDialog(props: LeaveDialogProps) {
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
      <Text>{props.children}</Text>
      <Group justify="flex-end" mt="md">
        <Button
          size="sm"
          onClick={() => {
            props.onDiscard();
            leaving.proceed();
          }}
        >
          Discard and leave
        </Button>
        {!props.isLost && (
          <Button size="sm" onClick={leaving.proceed}>
            Leave, keep the draft
          </Button>
        )}
        <Button size="sm" variant="filled" data-autofocus onClick={leaving.reset}>
          Stay
        </Button>
      </Group>
    </Dialog>
  );
}
