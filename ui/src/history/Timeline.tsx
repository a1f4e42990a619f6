// A tenant's versions, the newest first and by day. Two may be ticked and compared.
import { ActionIcon, Badge, Button, Checkbox, Group, Menu, Pill, Text } from "@mantine/core";
import { IconDots } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ComponentProps, useState } from "react";
import { removeTag, setTag } from "@/api/changes";
import { fileAddress, tenantKey } from "@/api/client";
import { fileHistoryQuery, historyQuery, shownTenant, useList } from "@/api/queries";
import type { TenantVersion } from "@/api/types";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { NameDialog } from "@/parts/dialogs";
import { countText, zoneText } from "@/parts/formats";
import { save } from "@/parts/page";
import { EmptyNote, Placeholder } from "@/parts/states";
import { tellProblem } from "@/parts/toasts";
import { Changes, Moment } from "@/parts/values";
import { useMay } from "@/session/session";
import { RestoreDialog } from "./Restore";
import { UndoDialog } from "./Undo";
import { VersionList } from "./VersionList";
import { barParts, jobOf, largestChange, makerText, type RestoreOrder } from "./versions";
import "./history.css";

export function Timeline() {
  const { place, search, go } = usePanel();
  const choice = { stream: search.stream, path: search.file };
  const { query, entries: versions, more } = useList(historyQuery(place, choice), (page) => page.versions);
  const [ticked, setTicked] = useState<readonly number[]>([]);
  const [restoring, setRestoring] = useState<RestoreOrder | null>(null);
  const [undoing, setUndoing] = useState<Omit<ComponentProps<typeof UndoDialog>, "onClose"> | null>(null);
  const [tagging, setTagging] = useState<number | null>(null);
  const client = useQueryClient();
  const may = useMay();
  const untagging = useMutation({
    mutationFn: (tag: string) => removeTag(place, tag, shownTenant(client, place)),
    onSuccess: () => client.invalidateQueries({ queryKey: tenantKey(place) }),
    onError: tellProblem,
  });
  const scale = largestChange(versions);
  const filter = search.stream ?? search.file;
  const scopeNames = filter === undefined ? undefined : [filter];
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

  const [before, after] = [...ticked].sort((one, other) => one - other);
  const span = before !== undefined && after !== undefined && { before, after };

  if (!query.data) return <Placeholder query={query} lines={10} />;
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
              "aria-label": `Remove the filter ${filter}`,
            }}
            onRemove={() => go({ stream: undefined, file: undefined })}
          >
            {filter}
          </Pill>
        )}
        <Text c="dimmed">
          {ticked.length === 0 ? "Tick two versions to compare them." : `${ticked.length} of 2 ticked`}
          {` Times are of ${zoneText()}.`}
        </Text>
        {span && may("snapshots:write") && (
          <Button
            ml="auto"
            title="As if they were one; later changes stay"
            onClick={() =>
              setUndoing({
                what: `${filter ? `${filter} in ` : ""}versions ${span.before} to ${span.after}`,
                order: { version: span.after, since: span.before, ...(scopeNames && { only: scopeNames }) },
              })
            }
          >
            Undo {span.before} to {span.after}…
          </Button>
        )}
        <Button
          variant="filled"
          {...(!span && { ml: "auto" })}
          disabled={!span}
          onClick={() => span && go({ ...span, diff: undefined })}
        >
          Compare
        </Button>
      </Group>
      <VersionList versions={versions} onNearEnd={more}>
        {(entry) => (
          <VersionRow
            entry={entry}
            scale={scale}
            isTicked={ticked.includes(entry.version)}
            scope={scope}
            onTick={() => tick(entry.version)}
            onRestore={setRestoring}
            onUndo={() =>
              setUndoing({
                what: `version ${entry.version}, by ${makerText(entry)}`,
                order: { version: entry.version },
              })
            }
            onTag={() => setTagging(entry.version)}
            onUntag={(tag) => untagging.mutate(tag)}
          />
        )}
      </VersionList>
      {restoring && <RestoreDialog order={restoring} onClose={() => setRestoring(null)} />}
      {undoing && <UndoDialog {...undoing} onClose={() => setUndoing(null)} />}
      {tagging !== null && <TagDialog version={tagging} onClose={() => setTagging(null)} />}
    </>
  );
}

/** A name for a version, which is then kept whatever the retention says. */
function TagDialog({ version, onClose }: { version: number; onClose: () => void }) {
  const { place } = usePanel();
  const client = useQueryClient();
  return (
    <NameDialog
      title={`Tag version ${version}`}
      label="Tag"
      description="A tagged version is kept regardless of the retention."
      placeholder="before-migration"
      action="Tag"
      onSubmit={async (name) => {
        await setTag(place, name, version, shownTenant(client, place));
        await client.invalidateQueries({ queryKey: tenantKey(place) });
      }}
      onClose={onClose}
    />
  );
}

const NAMED_MAX = 3;

interface VersionRowProps {
  entry: TenantVersion;
  scale: number;
  isTicked: boolean;
  /** The stream or file that is looked at alone: what is restored, unless somebody asks for everything. */
  scope: Omit<RestoreOrder, "version"> & { name?: string | undefined };
  onTick: () => void;
  onRestore: (order: RestoreOrder) => void;
  onUndo: () => void;
  onTag: () => void;
  onUntag: (tag: string) => void;
}

/**
 * One version in the timeline: who, job, message, a bar for each stream that changed, and what one may do
 * with it.
 */
function VersionRow(props: VersionRowProps) {
  const { entry, scale, isTicked, onTick, onRestore, onUndo, onTag, onUntag } = props;
  const { name, ...only } = props.scope;
  const { place, go } = usePanel();
  const may = useMay();
  const path = only.files?.[0];
  const files = useQuery({ ...fileHistoryQuery(place, path ?? ""), enabled: path !== undefined });
  const file = files.data?.revisions.find((one) => one.version <= entry.version);
  const streams = Object.entries(entry.streams);
  const previous = entry.version - 1;
  const jobId = jobOf(entry);
  const order = { version: entry.version, maker: makerText(entry) };
  // What the history is of stays open.
  const view = () =>
    go({
      ...NOTHING_OPEN,
      panel: "snapshots",
      v: entry.version,
      stream: only.streams?.[0],
      file: path,
    });
  const compare = (diff?: string) => go({ before: previous, after: entry.version, diff });
  return (
    <article className="timeline-row" aria-label={`Version ${entry.version}`} tabIndex={-1}>
      <Checkbox
        size="xs"
        mt={2}
        aria-label={`Select version ${entry.version}`}
        checked={isTicked}
        onChange={onTick}
      />
      <span className="timeline-dot" data-kind={entry.kind === "commit" ? "commit" : "other"} aria-hidden />
      <div>
        <Group gap={6}>
          <strong className="number">{entry.version}</strong>
          <span>{jobId ? <JobLink jobId={jobId} /> : makerText(entry)}</span>
          {jobId && entry.who && <span className="dim">{entry.who}</span>}
          {entry.tags.map((tag) => (
            <Badge key={tag} size="sm" variant="light">
              {tag}
            </Badge>
          ))}
          {entry.kind !== "commit" && (
            <Badge size="sm" color="gray">
              {entry.kind}
            </Badge>
          )}
        </Group>
        {entry.is_idle && <Text className="dim">This job ran and changed nothing.</Text>}
        {entry.message && <Message text={entry.message} restored={entry.restored} />}
        <div className="change-bars">
          {streams.map(([name, counts]) => (
            <StreamBar
              key={name}
              name={name}
              counts={counts}
              scale={scale}
              canCompare={previous >= 0}
              version={entry.version}
              onOpen={() =>
                // Before version 0 there is nothing to compare with.
                previous >= 0
                  ? compare(`stream ${name}`)
                  : go({ ...NOTHING_OPEN, panel: "snapshots", stream: name, v: entry.version })
              }
            />
          ))}
        </div>
        <Paths label="wrote" paths={entry.files_written} />
        <Paths label="deleted" paths={[...entry.files_deleted, ...entry.streams_dropped]} />
      </div>
      <Group gap={4} wrap="nowrap">
        <span className="dim">
          <Moment at={entry.timestamp} isDated />
        </span>
        {name && (
          <Button size="compact-xs" aria-label={`View version ${entry.version}`} onClick={view}>
            View
          </Button>
        )}
        {path && file && !file.deleted && (!file.sealed || may("secrets:read")) && (
          <Button
            size="compact-xs"
            aria-label={`Download version ${entry.version}`}
            onClick={() => save(fileAddress(place, path, entry.version))}
          >
            Download
          </Button>
        )}
        <Menu position="bottom-end">
          <Menu.Target>
            <ActionIcon aria-label={`Actions of version ${entry.version}`}>
              <IconDots size={16} />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            {may("snapshots:write") && entry.kind === "commit" && !entry.is_idle && (
              <Menu.Item onClick={onUndo}>Undo this {jobId ? "job" : "change"}…</Menu.Item>
            )}
            {previous >= 0 && (
              <Menu.Item onClick={() => compare()}>Compare with the version before</Menu.Item>
            )}
            {!name && <Menu.Item onClick={view}>View</Menu.Item>}
            {may("snapshots:write") &&
              (name ? [name] : streams.slice(0, NAMED_MAX).map(([stream]) => stream)).map((one) => (
                <Menu.Item
                  key={one}
                  onClick={() => onRestore({ ...order, ...(name ? only : { streams: [one] }) })}
                >
                  Restore {one}…
                </Menu.Item>
              ))}
            {may("snapshots:write") && (
              <Menu.Item onClick={() => onRestore(order)}>Restore everything…</Menu.Item>
            )}
            {may("snapshots:write") && <Menu.Item onClick={onTag}>Tag…</Menu.Item>}
            {may("snapshots:delete") &&
              entry.tags.map((tag) => (
                <Menu.Item key={tag} onClick={() => onUntag(tag)}>
                  Remove the tag {tag}
                </Menu.Item>
              ))}
          </Menu.Dropdown>
        </Menu>
      </Group>
    </article>
  );
}

/** A restoration's message leads to the version that was brought back. */
function Message({ text, restored }: { text: string; restored: number | null }) {
  const { go } = usePanel();
  const name = `version ${restored}`;
  const [before, ...after] = restored === null ? [text] : text.split(name);
  return (
    <Text>
      {before}
      {after.length > 0 && (
        <button
          type="button"
          className="crumb crumb-link"
          onClick={() => go({ ...NOTHING_OPEN, panel: "snapshots", v: restored ?? undefined })}
        >
          {name}
        </button>
      )}
      {after.join(name)}
    </Text>
  );
}

interface StreamBarProps {
  name: string;
  counts: { inserted: number; updated: number; deleted: number };
  scale: number;
  version: number;
  canCompare: boolean;
  onOpen: () => void;
}

function StreamBar(props: StreamBarProps) {
  const { counts, scale, name } = props;
  return (
    <>
      <Button
        size="compact-xs"
        variant="subtle"
        justify="flex-start"
        px={0}
        className="stream-name"
        onClick={props.onOpen}
        title={props.canCompare ? `What changed in ${name}` : `${name} as of version ${props.version}`}
      >
        {name}
      </Button>
      <span className="change-bar" aria-hidden>
        {barParts(counts, scale).map(({ fate, percent }) => (
          <span key={fate} data-fate={fate} style={{ width: `${percent}%` }} />
        ))}
      </span>
      <Changes counts={counts} />
    </>
  );
}

function JobLink({ jobId }: { jobId: string }) {
  const { go } = usePanel();
  const may = useMay();
  if (!may("jobs:read")) return <span className="mono">{jobId}</span>;
  return (
    <button
      type="button"
      className="crumb mono"
      onClick={() => go({ ...NOTHING_OPEN, panel: "jobs", job: jobId })}
    >
      {jobId}
    </button>
  );
}

function Paths({ label, paths }: { label: string; paths: readonly string[] }) {
  const shown = paths.filter((path) => !path.endsWith("/_folder"));
  if (shown.length === 0) return null;
  const more = shown.length - NAMED_MAX;
  return (
    <Text size="xs" c="dimmed" title={shown.join("\n")}>
      {label} {shown.slice(0, NAMED_MAX).join(", ")}
      {more > 0 && ` and ${countText(more)} more`}
    </Text>
  );
}
