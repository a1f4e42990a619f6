// A file below the breadcrumb: shown as text, edited in place, downloaded, or behind its seal.
import { Button, Group, Text } from "@mantine/core";
import { IconLock } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useCallback, useRef, useState } from "react";
import { readFile } from "@/api/changes";
import { type Encoding, pictureType } from "@/api/file-text";
import { fileAddress, tenantKey } from "@/api/place";
import { fileHistoryQuery } from "@/api/queries";
import { usePanel } from "@/navigation/panel";
import { EmptyNote } from "@/parts/EmptyNote";
import { bytesText } from "@/parts/formats";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { Moment } from "@/parts/Moment";
import { ProblemNote } from "@/parts/ProblemNote";
import { save } from "@/parts/save";
import { useMay } from "@/session/session";
import { FileContent } from "./FileContent";
import { Picture } from "./Picture";
import { RevealBar } from "./RevealBar";
import { useReveal } from "./useReveal";
import { useSealing } from "./useSealing";
import "./files.css";

const FRESH_MS = 5_000;
const SHOWN_BYTES_MAX = 5 * 1024 * 1024;
/** Of a longer file so much is shown. */
const HEAD_BYTES = 1024 * 1024;
const PICTURE_BYTES_MAX = 20 * 1024 * 1024;

export default function FilePage() {
  const { place, search, version, go } = usePanel();
  const path = search.file ?? "";
  const may = useMay();
  const revisions = useQuery(fileHistoryQuery(place, path));
  const reveal = useReveal(path);
  const sealing = useSealing();
  const { keep } = reveal;
  const [isChanged, setChanged] = useState(false);
  const revision = revisions.data?.revisions.find((one) => version === undefined || one.version <= version);
  const isSealed = revision?.sealed ?? false;
  const isShown = revision !== undefined && !revision.deleted && (!isSealed || reveal.isShown);
  const isLong = (revision?.size ?? 0) > SHOWN_BYTES_MAX;
  const picture = (revision?.size ?? 0) <= PICTURE_BYTES_MAX ? pictureType(path) : undefined;
  const content = useQuery({
    queryKey: [...tenantKey(place), "file", path, version ?? "now", isLong],
    queryFn: () => readFile(place, path, version, isLong ? HEAD_BYTES : undefined),
    // What somebody types rests on the text that they see: it stays until it is saved or taken back.
    enabled: isShown && !isChanged && picture === undefined,
    gcTime: isSealed ? 0 : 60_000,
    staleTime: version === undefined && !isSealed ? FRESH_MS : Number.POSITIVE_INFINITY,
  });
  const seen = useRef(revision?.version);
  if (!isChanged) seen.current = revision?.version;
  const onChanged = useCallback(
    (changed: boolean) => {
      setChanged(changed);
      keep(changed);
    },
    [keep],
  );

  if (revisions.isPending) return <LateSkeleton />;
  if (revisions.isLoadingError)
    return <ProblemNote error={revisions.error} onRetry={() => revisions.refetch()} />;
  if (!revision || revision.deleted)
    return (
      <EmptyNote title="This version has no such file.">
        The History tab shows the versions that have it.
      </EmptyNote>
    );
  return (
    <>
      <Group gap="md">
        <Text size="xs" c="dimmed" component="div">
          {bytesText(revision.size)} · changed <Moment at={revision.modified} /> by{" "}
          {revision.author || "unknown"} · version {revision.version}
        </Text>
        <Group gap="xs" ml="auto">
          {isSealed && may("admin") && (
            <Link
              className="text-link"
              to="/audit"
              search={{ env: place.environment, tenant: place.tenant, action: "file.unseal", subject: path }}
            >
              Readers
            </Link>
          )}
          {!isSealed && version === undefined && may("snapshots:write") && !isChanged && (
            <Button
              size="compact-sm"
              variant="default"
              loading={sealing.isPending}
              onClick={() => sealing.mutate([{ place, path }])}
            >
              Seal
            </Button>
          )}
          <Button size="compact-sm" variant="default" onClick={() => go({ panel: "history" })}>
            Versions
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => save(fileAddress(place, path, version))}>
            Download
          </Button>
        </Group>
      </Group>
      {isSealed && reveal.isShown && <RevealBar reveal={reveal} />}
      {isSealed && !reveal.isShown ? (
        <EmptyNote title="This file is sealed.">
          <Group gap="xs" justify="center" mb="xs">
            <IconLock size={18} aria-hidden /> Revealing it adds an entry with your name to the audit.
          </Group>
          <Button size="xs" onClick={reveal.show}>
            Reveal
          </Button>
        </EmptyNote>
      ) : picture !== undefined ? (
        <Picture key={`${path} ${revision.version}`} path={path} type={picture} />
      ) : content.isLoadingError ? (
        <ProblemNote error={content.error} onRetry={() => content.refetch()} />
      ) : content.isPending ? (
        <LateSkeleton />
      ) : content.data === null ? (
        <EmptyNote title="This file is not text.">Download it to see what it is.</EmptyNote>
      ) : (
        <>
          <Shown encoding={content.data.encoding} size={isLong ? revision.size : undefined} />
          <FileContent
            key={`${path} ${content.data.etag}`}
            path={path}
            text={content.data.text}
            etag={content.data.etag}
            isReadOnly={
              version !== undefined || !may("snapshots:write") || isLong || content.data.encoding !== "UTF-8"
            }
            isSealed={isSealed}
            isBehind={isChanged && seen.current !== revision.version}
            onChanged={onChanged}
          />
        </>
      )}
    </>
  );
}

/** What of the file is shown, where that is not all of it or not as it is. */
function Shown({ encoding, size }: { encoding: Encoding; size: number | undefined }) {
  const told = [
    size !== undefined &&
      `These are the first lines, up to 1 MiB of ${bytesText(size)}. Download the file to see all of it.`,
    encoding !== "UTF-8" && `The file is encoded as ${encoding}. Only UTF-8 files can be edited here.`,
  ].filter(Boolean);
  if (told.length === 0) return null;
  return (
    <div className="shown-bar" role="note">
      {told.join(" ")}
    </div>
  );
}
