// The History tab: the tenant's versions as a timeline, or the difference of two of them.
import { Badge, Button, Group, NavLink, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { readFile } from "@/api/changes";
import { tenantKey } from "@/api/client";
import { differenceQuery, overviewQuery } from "@/api/queries";
import type { Difference } from "@/api/types";
import { TwoTexts } from "@/files/TwoTexts";
import { usePanel } from "@/navigation/panel";
import { counted } from "@/parts/formats";
import { EmptyNote, Placeholder } from "@/parts/states";
import { Changes } from "@/parts/values";
import { useMay } from "@/session/session";
import { RestoreDialog, RestoreRowsDialog } from "./Restore";
import { RowDifferenceGrid } from "./RowDifferenceGrid";
import { Timeline } from "./Timeline";
import { UndoDialog } from "./Undo";
import type { RowKey } from "./versions";
import "./history.css";

export default function HistoryTab() {
  const { search } = usePanel();
  if (search.before !== undefined && search.after !== undefined)
    return <DifferenceView before={search.before} after={search.after} />;
  // Two versions that are ticked are of what the history is of.
  return <Timeline key={`${search.stream}/${search.file}`} />;
}

/** What differs between two versions: streams with counts and rows, files as text. */
function DifferenceView({ before, after }: { before: number; after: number }) {
  const { place, search, go } = usePanel();
  const may = useMay();
  const [dialog, setDialog] = useState<ReactNode>(null);
  const onClose = () => setDialog(null);
  const difference = useQuery(differenceQuery(place, before, after));
  // What one job did is undone, and what came after it stays; between other versions it is restored.
  const made = useQuery(overviewQuery(place, after)).data?.last;
  const isOneJob = after === before + 1 && made?.kind === "commit";
  const streams = Object.entries(difference.data?.streams ?? {});
  const files = Object.entries(difference.data?.files ?? {});
  const names = [...streams.map(([stream]) => `stream ${stream}`), ...files.map(([path]) => `file ${path}`)];
  const open = names.find((one) => one === search.diff) ?? names[0];
  const [kind, name] = split(open);

  /** Undoes what the versions did to a stream or file, or to these rows of the stream. */
  function undo(what: string, name: string, keys: RowKey[] = []) {
    const order = { version: after, only: [name], ...(keys.length > 0 && { keys }) };
    setDialog(<UndoDialog what={`${what} in version ${after}`} order={order} onClose={onClose} />);
  }
  /** Undoes or restores rows of a stream; without keys all that differ. */
  function bringBack(name: string, keys: RowKey[]) {
    if (isOneJob)
      return undo(`${keys.length > 0 ? counted(keys.length, "row") : "all rows"} of ${name}`, name, keys);
    const rows = { stream: name, version: before, after, keys };
    setDialog(<RestoreRowsDialog {...rows} onClose={onClose} />);
  }

  return (
    <>
      <Group gap="sm">
        <Button onClick={() => go({ before: undefined, after: undefined, diff: undefined })}>
          Back to the timeline
        </Button>
        <Text>
          Version <strong>{before}</strong> → <strong>{after}</strong>
        </Text>
        {name && isOneJob && may("snapshots:write") && (
          <Button ml="auto" maw="100%" title="Later changes stay" onClick={() => undo(name, name)}>
            <span className="button-name">Undo {name}</span>…
          </Button>
        )}
        {name && may("snapshots:write") && (
          <Button
            {...(!isOneJob && { ml: "auto" })}
            maw="100%"
            title={`Restore ${name} as of version ${before}`}
            onClick={() => {
              const order = {
                version: before,
                ...(kind === "file" ? { files: [name] } : { streams: [name] }),
              };
              setDialog(<RestoreDialog order={order} onClose={onClose} />);
            }}
          >
            <span className="button-name">Restore {name}</span>…
          </Button>
        )}
      </Group>
      {!difference.data ? (
        <Placeholder query={difference} />
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
                verb={isOneJob ? "Undo" : "Restore"}
                {...(may("snapshots:write") && { onRestoreRows: (keys) => bringBack(name, keys) })}
              />
            )}
            {kind === "file" && name && <FileDifference key={name} path={name} of={difference.data} />}
          </div>
        </div>
      )}
      {dialog}
    </>
  );
}

function FileDifference({ path, of }: { path: string; of: Difference }) {
  const { place } = usePanel();
  const { fate, sealed } = of.files[path] ?? { fate: "changed", sealed: false };
  if (sealed) return <EmptyNote title="This file is sealed: its differences are not shown." />;
  const read = () =>
    Promise.all([
      fate === "added" ? { text: "" } : readFile(place, path, of.before),
      fate === "removed" ? { text: "" } : readFile(place, path, of.after),
    ]);
  const queryKey = [...tenantKey(place), "file-diff", path, of.before, of.after];
  return (
    <div className="editor">
      <TwoTexts path={path} queryKey={queryKey} read={read} />
    </div>
  );
}

function split(open: string | undefined): [string | undefined, string | undefined] {
  if (open === undefined) return [undefined, undefined];
  const space = open.indexOf(" ");
  return [open.slice(0, space), open.slice(space + 1)];
}
