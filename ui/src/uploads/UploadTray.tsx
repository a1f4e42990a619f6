// Uploads as they are seen from every other page, and the progress of some in words.
import { Button, Group, Progress } from "@mantine/core";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { useEffect } from "react";
import { type Place, tenantKey } from "@/api/client";
import type { PanelSearch } from "@/navigation/search";
import { bytesText, countText, durationText } from "@/parts/formats";
import { useEnvironment } from "@/session/session";
import {
  forgetFinished,
  forgetInterrupted,
  isUnderWay,
  noteInterrupted,
  type Upload,
  unsentUploads,
  useAllUploads,
  useInterrupted,
} from "./queue";
import "./uploads.css";

const WINDOW_MS = 5000;
let samples: { at: number; sent: number; of: string }[] = [];

/** The progress of uploads in words. */
export function toldAll(uploads: readonly Upload[], now: number = performance.now()): string {
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
