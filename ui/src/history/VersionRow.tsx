// One version in the timeline: who, job, message, a bar for each stream that changed, and what one may do with it.
import { ActionIcon, Badge, Button, Checkbox, Group, Menu, Text, Tooltip } from "@mantine/core";
import { IconDots, IconRestore } from "@tabler/icons-react";
import type { TenantVersion } from "@/api/types";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { Changes } from "@/parts/Changes";
import { countText } from "@/parts/formats";
import { Moment } from "@/parts/Moment";
import { useMay } from "@/session/session";
import { barParts } from "./change-bars";
import { jobOf, makerText } from "./maker";
import type { RestoreOrder } from "./Timeline";

const NAMED_MAX = 3;

interface VersionRowProps {
  entry: TenantVersion;
  scale: number;
  isTicked: boolean;
  /** The stream or file that is looked at alone: what is restored, unless somebody asks for everything. */
  scope: Omit<RestoreOrder, "version"> & { name?: string | undefined };
  onTick: () => void;
  onRestore: (order: RestoreOrder) => void;
  onTag: () => void;
  onUntag: (tag: string) => void;
}

export function VersionRow(props: VersionRowProps) {
  const { entry, scale, isTicked, onTick, onRestore, onTag, onUntag } = props;
  const { name, ...only } = props.scope;
  const { go } = usePanel();
  const may = useMay();
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
      file: only.files?.[0],
    });
  const compare = (diff?: string) => go({ before: previous, after: entry.version, diff });
  return (
    <article className="timeline-row" aria-label={`Version ${entry.version}`} tabIndex={-1}>
      <Checkbox
        size="xs"
        mt={2}
        aria-label={`Compare version ${entry.version}`}
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
        {entry.is_idle && (
          <Text size="sm" className="dim">
            This job ran and changed nothing.
          </Text>
        )}
        {entry.message && <Message text={entry.message} restored={entry.restored} />}
        <div className="change-bars">
          {streams.map(([name, counts]) => (
            <StreamBar
              key={name}
              name={name}
              counts={counts}
              scale={scale}
              canCompare={previous >= 0}
              canRestore={may("snapshots:write")}
              version={entry.version}
              onOpen={() =>
                // Before version 0 there is nothing to compare with.
                previous >= 0
                  ? compare(`stream ${name}`)
                  : go({ ...NOTHING_OPEN, panel: "snapshots", stream: name, v: entry.version })
              }
              onRestore={() => onRestore({ ...order, streams: [name] })}
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
          <Button
            size="compact-xs"
            variant="default"
            aria-label={`View version ${entry.version}`}
            onClick={view}
          >
            View
          </Button>
        )}
        <Menu position="bottom-end">
          <Menu.Target>
            <ActionIcon variant="subtle" color="gray" aria-label={`What to do with version ${entry.version}`}>
              <IconDots size={16} />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            {previous >= 0 && (
              <Menu.Item onClick={() => compare()}>Compare with the version before</Menu.Item>
            )}
            {!name && <Menu.Item onClick={view}>View as of</Menu.Item>}
            {may("snapshots:write") && (
              <Menu.Item onClick={() => onRestore({ ...order, ...only })}>
                {name ? `Restore ${name}…` : "Restore…"}
              </Menu.Item>
            )}
            {may("snapshots:write") && name && (
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
    <Text size="sm">
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
  canRestore: boolean;
  onOpen: () => void;
  onRestore: () => void;
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
      <Group gap={4} wrap="nowrap" justify="space-between">
        <Changes counts={counts} />
        {props.canRestore && (
          <Tooltip label={`Restore ${name} as of version ${props.version}…`}>
            <ActionIcon
              size="sm"
              variant="subtle"
              color="gray"
              aria-label={`Restore ${name} as of version ${props.version}`}
              onClick={props.onRestore}
            >
              <IconRestore size={14} />
            </ActionIcon>
          </Tooltip>
        )}
      </Group>
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
