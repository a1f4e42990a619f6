// The uploads of a tenant as rows: progress, speed, and what can be done about each.
import { Button, Group, Progress, Text } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { Place } from "@/api/client";
import { NameDialog } from "@/parts/dialogs";
import { bytesText, countText } from "@/parts/formats";
import {
  type Answer,
  cancelAll,
  cancelUpload,
  forgetFinished,
  renameUpload,
  retryUpload,
  settleUpload,
  type Upload,
  useUploads,
} from "./queue";
import { toldAll } from "./UploadTray";
import "./uploads.css";

const SHOWN_MAX = 200;
/** Of more files that are there already nothing is asked of the service, one by one. */
const TOLD_MAX = 20;

interface UploadListProps {
  place: Place;
  /** What is said of a file that is there already. */
  existing?: (upload: Upload) => ReactNode;
}

export function UploadList({ place, existing }: UploadListProps) {
  const uploads = useUploads(place);
  if (uploads.length === 0) return null;
  const open = uploads.filter((one) => one.state !== "done" && one.state !== "cancelled");
  const asked = uploads.filter((one) => one.state === "exists");
  const failed = uploads.filter((one) => one.state === "failed");
  return (
    <section aria-label="Uploads">
      <Group justify="space-between" mb={4}>
        <Text role="status">{toldAll(uploads)}</Text>
        <Group gap={4}>
          {asked.length > 1 && (
            <>
              <span className="dim">{countText(asked.length)} already exist:</span>
              <ForAll uploads={asked} answer="replace" label="Replace all" />
              <ForAll uploads={asked} answer="keep both" label="Keep both of all" />
              <ForAll uploads={asked} answer="skip" label="Skip all" />
            </>
          )}
          {failed.length > 1 && (
            <Button
              size="compact-xs"
              onClick={() => {
                for (const one of failed) retryUpload(one.id);
              }}
            >
              Try all again
            </Button>
          )}
          {open.length > asked.length + failed.length ? (
            <Button size="compact-xs" variant="subtle" onClick={() => cancelAll(place)}>
              Cancel all
            </Button>
          ) : (
            <Button size="compact-xs" variant="subtle" onClick={() => forgetFinished(place)}>
              Clear the list
            </Button>
          )}
        </Group>
      </Group>
      {open.length > 0 && (
        <div className="uploads">
          {open.slice(0, SHOWN_MAX).map((upload) => (
            <UploadRow
              key={upload.id}
              upload={upload}
              existing={asked.length <= TOLD_MAX ? existing : undefined}
            />
          ))}
        </div>
      )}
    </section>
  );
}

function ForAll(props: { uploads: readonly Upload[]; answer: Answer; label: string }) {
  return (
    <Button
      size="compact-xs"
      onClick={() => {
        for (const one of props.uploads) settleUpload(one.id, props.answer);
      }}
    >
      {props.label}
    </Button>
  );
}

interface UploadRowProps {
  upload: Upload;
  existing: UploadListProps["existing"] | undefined;
}

function UploadRow({ upload, existing }: UploadRowProps) {
  const [isRenaming, setRenaming] = useState(false);
  const share = upload.file.size === 0 ? 100 : (100 * upload.sent) / upload.file.size;
  const name = upload.rows ? `Rows for ${upload.rows.stream}: ${upload.path}` : upload.path;
  return (
    <div className="upload">
      <span title={name}>{name}</span>
      <Progress value={share} aria-label={`${name}: ${Math.round(share)} %`} className="upload-bar" />
      <span className="dim number">{told(upload)}</span>
      <Actions upload={upload} onRename={() => setRenaming(true)} />
      {upload.state === "failed" && upload.advice && <span className="upload-advice">{upload.advice}</span>}
      {upload.state === "exists" && existing?.(upload)}
      {isRenaming && (
        <NameDialog
          title={`Rename ${upload.path}`}
          label="Path"
          action="Rename"
          initial={upload.path}
          onSubmit={async (path) => renameUpload(upload.id, path)}
          onClose={() => setRenaming(false)}
        />
      )}
    </div>
  );
}

function Actions({ upload, onRename }: { upload: Upload; onRename: () => void }) {
  if (upload.state === "exists")
    return (
      <Group gap={4} wrap="nowrap">
        <Button
          variant="filled"
          size="compact-xs"
          onClick={() => settleUpload(upload.id, "replace")}
          title="Creates a new version; the old one is kept"
        >
          Replace
        </Button>
        <Button size="compact-xs" onClick={() => settleUpload(upload.id, "keep both")}>
          Keep both
        </Button>
        <Button size="compact-xs" onClick={() => settleUpload(upload.id, "skip")}>
          Skip
        </Button>
      </Group>
    );
  if (upload.state === "failed")
    return (
      <Group gap={4} wrap="nowrap">
        <Button size="compact-xs" onClick={() => retryUpload(upload.id)}>
          Try again
        </Button>
        {!upload.rows && (
          <Button size="compact-xs" onClick={onRename}>
            Rename…
          </Button>
        )}
        <Button size="compact-xs" onClick={() => cancelUpload(upload.id)}>
          Remove
        </Button>
      </Group>
    );
  if (upload.state === "saving") return null;
  return (
    <Button size="compact-xs" variant="subtle" onClick={() => cancelUpload(upload.id)}>
      Cancel
    </Button>
  );
}

function told(upload: Upload): string {
  if (upload.state === "checking" || upload.state === "waiting") return "waiting";
  if (upload.state === "sent") return "sent";
  if (upload.state === "saving") return "saving";
  if (upload.state === "exists") return "already exists";
  if (upload.state === "failed") return upload.problem;
  return `${bytesText(upload.sent)} of ${bytesText(upload.file.size)}`;
}
