// Uploads as they are seen from every other page: how far each tenant's are, and what a closed page cut off.
import { Button, Group, Progress } from "@mantine/core";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { useEffect } from "react";
import { type Place, tenantKey } from "@/api/place";
import type { PanelSearch } from "@/navigation/search";
import { countText } from "@/parts/formats";
import { useEnvironment } from "@/session/session";
import { forgetInterrupted, noteInterrupted, useInterrupted } from "./interrupted";
import { forgetFinished, isUnderWay, type Upload, unsentUploads, useAllUploads } from "./queue";
import { toldAll } from "./told";
import "./uploads.css";

const NAMES_MAX = 3;

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

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
