// The uploads of a tenant as rows: progress, speed, and what can be done about each.
import { Button, Group, Progress, Text } from "@mantine/core";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { type Place, tenantKey } from "@/api/client";
import type { PanelSearch } from "@/navigation/search";
import { NameDialog } from "@/parts/dialogs";
import { bytesText, countText, durationText } from "@/parts/formats";
import { useEnvironment } from "@/session/session";
import {
  type Answer,
  cancelAll,
  cancelUpload,
  forgetFinished,
  forgetInterrupted,
  isUnderWay,
  noteInterrupted,
  renameUpload,
  retryUpload,
  settleUpload,
  type Upload,
  unsentUploads,
  useAllUploads,
  useInterrupted,
  useUploads,
} from "./queue";
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

const WINDOW_MS = 5000;
let samples: { at: number; sent: number; of: string }[] = [];

/** The progress of uploads in words. */
function toldAll(uploads: readonly Upload[], now: number = performance.now()): string {
  const of = (state: Upload["state"]) => uploads.filter((one) => one.state === state).length;
  const [done, failed, asked] = [of("done"), of("failed"), of("exists")];
  if (!uploads.some(isUnderWay) && asked === 0)
    return `${countText(done)} uploaded${failed > 0 ? `, ${countText(failed)} failed` : ""}`;
  const arrived = done + of("sent") + of("saving");
  const bytes = sum(uploads.map((one) => one.file.size));
  const sent = sum(uploads.map((one) => (one.state === "done" ? one.file.size : one.sent)));
  const seconds = secondsLeft(uploads, bytes, sent, now);
  const parts = [
    `Uploading: ${countText(arrived)} of ${countText(uploads.length)} files`,
    `${bytesText(sent)} of ${bytesText(bytes)}`,
    seconds !== undefined && `${durationText(Math.ceil(seconds))} left`,
    asked > 0 && `${countText(asked)} already exist`,
    failed > 0 && `${countText(failed)} failed`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** From the bytes of the last seconds: nothing is sent while the service is away, so nothing is promised then. */
function secondsLeft(uploads: readonly Upload[], bytes: number, sent: number, now: number) {
  const of = uploads[0] ? `${uploads[0].place.environment}/${uploads[0].place.tenant}` : "";
  samples = [...samples.filter((one) => one.of === of && now - one.at < WINDOW_MS), { at: now, sent, of }];
  const [first] = samples;
  if (!first || now - first.at < 1000 || sent <= first.sent) return undefined;
  return (bytes - sent) / ((sent - first.sent) / ((now - first.at) / 1000));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

const NAMES_MAX = 3;

/**
 * Uploads as they are seen from every other page: how far each tenant's are, and what a closed page cut off.
 */
export function UploadTray() {
  useUploadGuard();
  const shown = useShownPlace();
  const uploads = grouped(useAllUploads()).filter(([name]) => name !== shown);
  const interrupted = grouped(useInterrupted());
  if (uploads.length + interrupted.length === 0) return null;
  return (
    <section className="upload-tray" aria-label="Uploads of all tenants">
      {uploads.map(([name, of]) => (
        <Sent key={name} uploads={of} />
      ))}
      {interrupted.map(([name, of]) => (
        <div key={name}>
          <div role="status">
            {countText(of.length)} not uploaded to {of[0]?.place.tenant} when the page was closed:{" "}
            {of
              .slice(0, NAMES_MAX)
              .map((one) => one.path)
              .join(", ")}
            {of.length > NAMES_MAX && " …"}. Choose them again to upload them.
          </div>
          <Group gap={4} justify="flex-end">
            <Opening place={(of[0] as Upload).place} />
            <Button
              size="compact-xs"
              variant="subtle"
              onClick={() => forgetInterrupted((one) => tenantKey(one.place).join("/") === name)}
            >
              Dismiss
            </Button>
          </Group>
        </div>
      ))}
    </section>
  );
}

function Sent({ uploads }: { uploads: readonly Upload[] }) {
  const { place } = uploads[0] as Upload;
  const bytes = sum(uploads.map((one) => one.file.size));
  const sent = sum(uploads.map((one) => (one.state === "done" ? one.file.size : one.sent)));
  const isOver = !uploads.some(isUnderWay);
  return (
    <div>
      <div role="status">
        {place.tenant}: {toldAll(uploads)}
      </div>
      {!isOver && <Progress value={bytes === 0 ? 0 : (100 * sent) / bytes} aria-label="Sent" my={4} />}
      <Group gap={4} justify="flex-end">
        <Opening place={place} />
        {isOver && (
          <Button size="compact-xs" variant="subtle" onClick={() => forgetFinished(place)}>
            Clear
          </Button>
        )}
      </Group>
    </div>
  );
}

function Opening({ place }: { place: Place }) {
  return (
    <Link
      className="text-link"
      to="/tenants/$tenant"
      params={{ tenant: place.tenant }}
      search={{ env: place.environment, panel: "snapshots" }}
    >
      Open {place.tenant}
    </Link>
  );
}

/** The tenant whose uploads the page lists by itself. */
function useShownPlace(): string | undefined {
  const { tenant } = useParams({ strict: false });
  const search = useSearch({ strict: false }) as PanelSearch;
  const environment = useEnvironment();
  const isList = (search.panel ?? "snapshots") === "snapshots" && !search.file && !search.stream;
  return tenant !== undefined && isList ? tenantKey({ environment, tenant }).join("/") : undefined;
}

/** The browser asks before a page goes that still sends; what was cut off is listed when it is there again. */
function useUploadGuard(): void {
  useEffect(() => {
    function onLeave(event: BeforeUnloadEvent) {
      if (unsentUploads().some(isUnderWay)) event.preventDefault();
    }
    function onGone() {
      noteInterrupted(unsentUploads());
    }
    window.addEventListener("beforeunload", onLeave);
    window.addEventListener("pagehide", onGone);
    return () => {
      window.removeEventListener("beforeunload", onLeave);
      window.removeEventListener("pagehide", onGone);
    };
  }, []);
}

function grouped<One extends { place: Place }>(all: readonly One[]): [string, One[]][] {
  const found = new Map<string, One[]>();
  for (const one of all) {
    const name = tenantKey(one.place).join("/");
    found.set(name, [...(found.get(name) ?? []), one]);
  }
  return [...found];
}
