// What differs between two versions: streams with counts and rows, files as text.
import { Badge, Button, Group, NavLink, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { readFile } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { differenceQuery } from "@/api/queries";
import { usePanel } from "@/navigation/panel";
import { Changes } from "@/parts/Changes";
import { EmptyNote } from "@/parts/EmptyNote";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { useMay } from "@/session/session";
import { RestoreDialog } from "./RestoreDialog";
import { RowDifferenceGrid } from "./RowDifferenceGrid";
import type { RestoreOrder } from "./Timeline";

const SideBySide = lazy(() => import("@/files/SideBySide"));

export function DifferenceView({ before, after }: { before: number; after: number }) {
  const { place, search, go } = usePanel();
  const may = useMay();
  const [restoring, setRestoring] = useState<RestoreOrder | null>(null);
  const difference = useQuery(differenceQuery(place, before, after));
  const streams = Object.entries(difference.data?.streams ?? {});
  const files = Object.entries(difference.data?.files ?? {});
  const names = [...streams.map(([stream]) => `stream ${stream}`), ...files.map(([path]) => `file ${path}`)];
  const open = names.find((one) => one === search.diff) ?? names[0];
  const [kind, name] = split(open);

  return (
    <>
      <Group gap="sm">
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => go({ before: undefined, after: undefined, diff: undefined })}
        >
          Back to the timeline
        </Button>
        <Text size="sm">
          Version <strong>{before}</strong> → <strong>{after}</strong>
        </Text>
        {name && may("snapshots:write") && (
          <Button
            size="compact-sm"
            variant="default"
            ml="auto"
            maw="100%"
            title={`Restore ${name} as of version ${before}`}
            onClick={() =>
              setRestoring({
                version: before,
                ...(kind === "file" ? { files: [name] } : { streams: [name] }),
              })
            }
          >
            <span className="button-name">Restore {name}</span>&nbsp;as of {before}…
          </Button>
        )}
      </Group>
      {difference.isPending ? (
        <LateSkeleton />
      ) : difference.isLoadingError ? (
        <ProblemNote error={difference.error} onRetry={() => difference.refetch()} />
      ) : streams.length + files.length === 0 ? (
        <EmptyNote title="The two versions are identical." />
      ) : (
        <div className="difference">
          <nav aria-label="Differences" className="difference-names">
            {streams.map(([stream, one]) => (
              <NavLink
                key={stream}
                component="button"
                label={stream}
                color="gray"
                description={<Changes counts={one} />}
                rightSection={one.fate !== "changed" && <Badge size="xs">{one.fate}</Badge>}
                active={open === `stream ${stream}`}
                onClick={() => go({ diff: `stream ${stream}` })}
              />
            ))}
            {files.map(([path, one]) => (
              <NavLink
                key={path}
                component="button"
                label={path}
                description={one.sealed ? "sealed" : one.fate}
                active={open === `file ${path}`}
                onClick={() => go({ diff: `file ${path}` })}
              />
            ))}
          </nav>
          <div className="difference-body">
            {kind === "stream" && name && (
              <RowDifferenceGrid
                key={name}
                stream={name}
                before={before}
                after={after}
                canRestore={may("snapshots:write")}
              />
            )}
            {kind === "file" && name && (
              <FileDifference
                key={name}
                path={name}
                before={before}
                after={after}
                fate={difference.data.files[name]?.fate ?? "changed"}
                isSealed={difference.data.files[name]?.sealed ?? false}
              />
            )}
          </div>
        </div>
      )}
      {restoring && <RestoreDialog order={restoring} onClose={() => setRestoring(null)} />}
    </>
  );
}

interface FileDifferenceProps {
  path: string;
  before: number;
  after: number;
  fate: "added" | "changed" | "removed";
  isSealed: boolean;
}

function FileDifference({ path, before, after, fate, isSealed }: FileDifferenceProps) {
  const { place } = usePanel();
  const texts = useQuery({
    queryKey: [...tenantKey(place), "file-diff", path, before, after],
    queryFn: async () => {
      const nothing = { text: "", etag: "" };
      const old = fate === "added" ? nothing : await readFile(place, path, before);
      const fresh = fate === "removed" ? nothing : await readFile(place, path, after);
      return old && fresh ? { old: old.text, fresh: fresh.text } : null;
    },
    enabled: !isSealed,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (isSealed) return <EmptyNote title="This file is sealed: its differences are not shown." />;
  if (texts.isPending) return <LateSkeleton />;
  if (texts.isLoadingError) return <ProblemNote error={texts.error} onRetry={() => texts.refetch()} />;
  if (texts.data === null) return <EmptyNote title="This file is not text." />;
  return (
    <div className="editor">
      <Suspense fallback={<LateSkeleton />}>
        <SideBySide path={path} left={texts.data.old} right={texts.data.fresh} />
      </Suspense>
    </div>
  );
}

function split(open: string | undefined): [string | undefined, string | undefined] {
  if (open === undefined) return [undefined, undefined];
  const space = open.indexOf(" ");
  return [open.slice(0, space), open.slice(space + 1)];
}
