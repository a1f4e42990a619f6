// A tenant's versions, the newest first and by day. Two may be ticked and compared.
import { Button, Group, Pill, Text } from "@mantine/core";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { removeTag } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { historyQuery } from "@/api/queries";
import { usePanel } from "@/navigation/panel";
import { EmptyNote } from "@/parts/EmptyNote";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { tellProblem } from "@/parts/toasts";
import { largestChange } from "./change-bars";
import "./history.css";
import { RestoreDialog } from "./RestoreDialog";
import { TagDialog } from "./TagDialog";
import { VersionList } from "./VersionList";
import { VersionRow } from "./VersionRow";

export interface RestoreOrder {
  version: number;
  /** The job or person that made the version. */
  maker?: string;
  streams?: string[];
  files?: string[];
}

export function Timeline() {
  const { place, search, go } = usePanel();
  const history = useInfiniteQuery(historyQuery(place, { stream: search.stream, path: search.file }));
  const [ticked, setTicked] = useState<readonly number[]>([]);
  const [restoring, setRestoring] = useState<RestoreOrder | null>(null);
  const [tagging, setTagging] = useState<number | null>(null);
  const client = useQueryClient();
  const untagging = useMutation({
    mutationFn: (tag: string) => removeTag(place, tag),
    onSuccess: () => client.invalidateQueries({ queryKey: tenantKey(place) }),
    onError: tellProblem,
  });
  const versions = useMemo(() => history.data?.pages.flatMap((page) => page.versions) ?? [], [history.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = history;
  const scale = largestChange(versions);
  const filter = search.stream ?? search.file;
  const scope = search.stream
    ? { name: filter, streams: [search.stream] }
    : search.file
      ? { name: filter, files: [search.file] }
      : {};

  function tick(version: number) {
    setTicked(
      ticked.includes(version) ? ticked.filter((one) => one !== version) : [...ticked, version].slice(-2),
    );
  }

  function compare() {
    const [before, after] = [...ticked].sort((one, other) => one - other);
    if (before !== undefined && after !== undefined) go({ before, after, diff: undefined });
  }

  if (history.isPending) return <LateSkeleton lines={10} />;
  if (history.isLoadingError) return <ProblemNote error={history.error} onRetry={() => history.refetch()} />;
  if (versions.length === 0)
    return <EmptyNote title="No version yet.">The first job, upload or import creates version 0.</EmptyNote>;
  return (
    <>
      <Group gap="xs" mih={26}>
        {filter && (
          <Pill
            withRemoveButton
            removeButtonProps={{
              tabIndex: 0,
              "aria-hidden": false,
              "aria-label": `Show the versions of everything, not of ${filter} alone`,
            }}
            onRemove={() => go({ stream: undefined, file: undefined })}
          >
            {filter}
          </Pill>
        )}
        <Text size="sm" c="dimmed">
          {ticked.length === 0 ? "Tick two versions to compare them." : `${ticked.length} of 2 ticked`}
        </Text>
        <Button size="compact-sm" ml="auto" disabled={ticked.length < 2} onClick={compare}>
          Compare
        </Button>
      </Group>
      <VersionList
        versions={versions}
        onNearEnd={() => {
          if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
        }}
      >
        {(entry) => (
          <VersionRow
            entry={entry}
            scale={scale}
            isTicked={ticked.includes(entry.version)}
            scope={scope}
            onTick={() => tick(entry.version)}
            onRestore={setRestoring}
            onTag={() => setTagging(entry.version)}
            onUntag={(tag) => untagging.mutate(tag)}
          />
        )}
      </VersionList>
      {restoring && <RestoreDialog order={restoring} onClose={() => setRestoring(null)} />}
      {tagging !== null && <TagDialog version={tagging} onClose={() => setTagging(null)} />}
    </>
  );
}
