// A folder's list with its four actions: Upload, Create folder, Download, Delete.
import { Button, TextInput, UnstyledButton } from "@mantine/core";
import {
  IconBraces,
  IconFile,
  IconFileTypeCsv,
  IconFolder,
  IconLock,
  IconSearch,
  IconTable,
} from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { createFolder, fileTag, type Move, moveFile, moveFolder } from "@/api/changes";
import { bundleAddress, exportAddress, fileAddress, tenantKey, unchanged } from "@/api/client";
import { folderQuery, overviewQuery, shownTenant, useList } from "@/api/queries";
import type { FileEntry, StreamOverview } from "@/api/types";
import { useSealing } from "@/files/useSealing";
import { usePanel } from "@/navigation/panel";
import { NameDialog } from "@/parts/dialogs";
import { bytesText, countText, nameText } from "@/parts/formats";
import { save, useShortcuts } from "@/parts/page";
import { sortedBy, sortFrom, sortText } from "@/parts/sorting";
import { EmptyNote, Placeholder } from "@/parts/states";
import { offerUndo } from "@/parts/toasts";
import { type Column, VirtualGrid } from "@/parts/VirtualGrid";
import { Changes, DATED, Moment } from "@/parts/values";
import { useReason } from "@/session/reason";
import { useMay } from "@/session/session";
import { UploadList } from "@/uploads/UploadList";
import { Breadcrumb } from "./Breadcrumb";
import { DeleteDialog, useDeletion } from "./Deletion";
import { ExistingFile } from "./ExistingFile";
import { DropZone, FolderActions } from "./FolderActions";
import { changedAt, type Item, itemsOf, shownItems } from "./items";
import "./snapshots.css";

export function FolderList() {
  const { place, search, version, go } = usePanel();
  const may = useMay();
  const folder = search.path ?? "";
  const sort = useMemo(() => sortFrom(search.order, "name"), [search.order]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [isCreating, setCreating] = useState(false);
  const [moved, setMoved] = useState<Movable | null>(null);
  const chooser = useRef<HTMLInputElement>(null);
  // Sorting and search are over the whole folder, so all of its pages are fetched.
  const whole = { isWhole: true };
  const { query: content, entries } = useList(folderQuery(place, folder, version), (page) => [page], whole);
  const overview = useQuery(overviewQuery(place, version));
  const all = useMemo(
    () => itemsOf(folder, entries, overview.data?.streams ?? []),
    [folder, entries, overview.data],
  );
  const items = useMemo(() => shownItems(all, search.find ?? "", sort), [all, search.find, sort]);
  const chosen = items.filter((item) => selected.has(item.key));
  const canWrite = may("snapshots:write") && version === undefined;
  const canDelete = may("snapshots:delete") && version === undefined;
  const [only] = chosen.length === 1 ? chosen : [];
  const movable = only && canWrite ? movableOf(only) : null;
  const sealable = chosen.flatMap((item) =>
    item.kind === "file" && !item.file.sealed ? [item.file.path] : [],
  );
  const download = useDownload();
  const mayOpen = (those: readonly Item[]) =>
    may("secrets:read") || !those.some((item) => item.kind === "file" && item.file.sealed);
  const sealing = useSealing(() => setSelected(new Set()));
  const deletion = useDeletion(() => setSelected(new Set()));

  // biome-ignore lint/correctness/useExhaustiveDependencies: another folder has another selection
  useEffect(() => setSelected(new Set()), [folder, version]);
  useShortcuts({
    u: canWrite ? () => chooser.current?.click() : undefined,
    n: canWrite ? () => setCreating(true) : undefined,
  });

  function open(item: Item) {
    if (item.kind === "folder") go({ path: item.path, find: undefined });
    else if (item.kind === "stream") go({ stream: item.name, view: undefined, find: undefined });
    else go({ file: item.file.path, find: undefined });
  }

  function onKey(event: KeyboardEvent, item: Item | undefined) {
    const those = chosen.length > 0 ? chosen : item ? [item] : [];
    if (event.key === "Delete" && canDelete) deletion.ask(those);
    else if (event.key === "d" && !event.ctrlKey && !event.metaKey && mayOpen(those)) download(those);
    else if (event.key === "Backspace" && folder)
      go({ path: folder.split("/").slice(0, -1).join("/") || undefined });
  }

  return (
    <DropZone folder={folder} isEnabled={canWrite}>
      <div className="bar">
        <Breadcrumb />
        <TextInput
          aria-label="Search this folder"
          placeholder="Search"
          size="xs"
          ml="auto"
          w={140}
          leftSection={<IconSearch size={14} />}
          value={search.find ?? ""}
          onChange={(event) => go({ find: event.currentTarget.value || undefined }, true)}
        />
        <FolderActions
          folder={folder}
          chooser={chooser}
          canWrite={canWrite}
          canDelete={canDelete}
          hasChosen={chosen.length > 0}
          onCreateFolder={() => setCreating(true)}
          onDownload={mayOpen(chosen) ? () => download(chosen) : undefined}
          onDelete={() => deletion.ask(chosen)}
        />
      </div>
      <UploadList place={place} existing={(upload) => <ExistingFile key={upload.there} upload={upload} />} />
      {!content.data || overview.isPending ? (
        <Placeholder query={content} lines={10} />
      ) : all.length === 0 ? (
        <EmptyFolder tenant={place.tenant} isTop={folder === ""} />
      ) : items.length === 0 ? (
        <EmptyNote title={`No name here contains “${search.find}”.`} />
      ) : (
        <VirtualGrid
          label="Snapshots"
          rows={items}
          columns={ITEM_COLUMNS}
          keyOf={(item) => item.key}
          nameOf={(item) => item.name}
          hasFocus={!search.find}
          sort={sort}
          onSort={(column) => go({ order: sortText(sortedBy(sort, column)) }, true)}
          selected={selected}
          onSelect={setSelected}
          isTotalExact={!content.hasNextPage}
          onOpen={open}
          onKey={onKey}
        />
      )}
      {chosen.length > 0 && (
        <SelectionBar
          count={chosen.length}
          onMove={movable === null ? undefined : () => setMoved(movable)}
          onSeal={
            canWrite && sealable.length === chosen.length
              ? () => sealing.mutate(sealable.map((path) => ({ place, path })))
              : undefined
          }
          isSealing={sealing.isPending}
          onClear={() => setSelected(new Set())}
        />
      )}
      {isCreating && <CreateFolder folder={folder} onClose={() => setCreating(false)} />}
      {moved !== null && (
        <MoveItem
          item={moved}
          onClose={() => {
            setMoved(null);
            setSelected(new Set());
          }}
        />
      )}
      {deletion.asked.length > 0 && <DeleteDialog deletion={deletion} />}
    </DropZone>
  );
}

/** Streams keep their names: scripts know them by these. */
function movableOf(item: Item): Movable | null {
  if (item.kind === "stream") return null;
  return item.kind === "file" ? { path: item.file.path, file: item.file } : { path: item.path };
}

function EmptyFolder({ tenant, isTop }: { tenant: string; isTop: boolean }) {
  if (!isTop) return <EmptyNote title="This folder is empty.">Drop files here, or choose Upload.</EmptyNote>;
  return (
    <EmptyNote
      title={`${tenant} has no streams or files yet.`}
      example={'import freezeframe\n\nfreezeframe.update_snapshot(SNAPSHOT_DIR, "Invoice", "Id", invoices)'}
    >
      A job's <code>update_snapshot</code> or an upload creates the first one.
    </EmptyNote>
  );
}

/** A new folder in the one that is shown. */
function CreateFolder({ folder, onClose }: { folder: string; onClose: () => void }) {
  const { place } = usePanel();
  const client = useQueryClient();
  return (
    <NameDialog
      title="Create folder"
      label="Name"
      action="Create"
      onSubmit={async (name) => {
        await createFolder(place, folder ? `${folder}/${name}` : name);
        await client.invalidateQueries({ queryKey: tenantKey(place) });
      }}
      onClose={onClose}
    />
  );
}

interface Movable {
  path: string;
  /** Undefined: it is a folder. */
  file?: FileEntry;
}

/**
 * Another path for a file or a folder with all below it: its name, the folder it is in, or both, as one
 * change.
 */
function MoveItem({ item, onClose }: { item: Movable; onClose: () => void }) {
  const { place } = usePanel();
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: tenantKey(place) });
  const move = (to: Move, file: FileEntry | undefined): Promise<FileEntry | { path: string }> =>
    file ? moveFile(place, to, unchanged(fileTag(file))) : moveFolder(place, to, shownTenant(client, place));
  const { message, field, isMissing } = useReason();
  return (
    <NameDialog
      title={`Rename or move ${item.path}`}
      label="Path"
      description={item.file ? "Missing folders are created." : "Its content moves with it, in one version."}
      action="Move"
      initial={item.path}
      onSubmit={async (target) => {
        const moved = await move({ path: item.path, target, message }, item.file);
        await refresh();
        const back = { path: moved.path, target: item.path, message: "undo of a move" };
        const file = "sha256" in moved ? moved : undefined;
        offerUndo(`Moved to ${moved.path}.`, () => move(back, file).then(refresh));
      }}
      isMissing={isMissing}
      onClose={onClose}
    >
      {field}
    </NameDialog>
  );
}

interface SelectionBarProps {
  count: number;
  /** Undefined: not possible with this selection. */
  onMove?: (() => void) | undefined;
  onSeal?: (() => void) | undefined;
  isSealing: boolean;
  onClear: () => void;
}

/** How many items are selected, and what can be done with them beside Download and Delete above the list. */
function SelectionBar({ count, onMove, onSeal, isSealing, onClear }: SelectionBarProps) {
  return (
    <section className="selection-bar" aria-label="Selection">
      <span>{countText(count)} selected</span>
      {onMove && <Button onClick={onMove}>Rename or move</Button>}
      {onSeal && (
        <Button loading={isSealing} onClick={onSeal}>
          Seal
        </Button>
      )}
      <Button variant="subtle" onClick={onClear}>
        Clear
      </Button>
    </section>
  );
}

/** Downloads: one file as it is, one stream as CSV, several of anything as a zip. */
function useDownload(): (items: readonly Item[]) => void {
  const { place, version } = usePanel();
  return (items) => {
    const [first] = items;
    if (!first) return;
    if (items.length === 1 && first.kind === "file")
      return save(fileAddress(place, first.file.path, version));
    if (items.length === 1 && first.kind === "stream")
      return save(exportAddress(place, first.name, "csv", version));
    const chosen = {
      files: items.flatMap((item) => (item.kind === "file" ? [item.file.path] : [])),
      folders: items.flatMap((item) => (item.kind === "folder" ? [item.path] : [])),
      streams: items.flatMap((item) => (item.kind === "stream" ? [item.name] : [])),
    };
    save(bundleAddress(place, chosen, version));
  };
}

/** The columns of a folder's list. */
const ITEM_COLUMNS: readonly Column<Item>[] = [
  {
    id: "name",
    header: "Name",
    width: "minmax(96px, 2fr)",
    isSortable: true,
    cell: (item) => <Name item={item} />,
  },
  {
    id: "rows",
    header: "Rows",
    width: "72px",
    align: "right",
    isSortable: true,
    cell: (item) => (item.kind === "stream" ? countText(item.stream.rows) : null),
  },
  {
    id: "change",
    header: "Last change",
    width: "118px",
    align: "right",
    isExtra: true,
    cell: (item) => item.kind === "stream" && <LastChange stream={item.stream} />,
  },
  { id: "size", header: "Size", width: "76px", align: "right", isSortable: true, isExtra: true, cell: size },
  { id: "changed", header: "Changed", width: DATED, align: "right", isSortable: true, cell: changed },
];

/** What a stream's newest version changed; it leads to the stream's versions. */
function LastChange({ stream }: { stream: StreamOverview }) {
  const { go } = usePanel();
  if (!stream.last) return null;
  return (
    <UnstyledButton
      className="cell-link"
      title={`Open the versions of ${stream.stream}`}
      onClick={() => go({ stream: stream.stream, view: "versions", find: undefined })}
    >
      <Changes counts={stream.last.counts} />
    </UnstyledButton>
  );
}

function Name({ item }: { item: Item }) {
  return (
    <span className="name-cell">
      {icon(item)}
      <span title={nameText(item.name)}>{nameText(item.name)}</span>
    </span>
  );
}

function icon(item: Item) {
  if (item.kind === "folder") return <IconFolder size={16} aria-label="Folder" />;
  if (item.kind === "stream") return <IconTable size={16} aria-label="Stream" />;
  if (item.file.sealed) return <IconLock size={16} aria-label="Sealed file" />;
  if (item.name.endsWith(".json")) return <IconBraces size={16} aria-label="File" />;
  if (item.name.endsWith(".csv")) return <IconFileTypeCsv size={16} aria-label="File" />;
  return <IconFile size={16} aria-label="File" />;
}

function size(item: Item) {
  if (item.kind === "folder") return null;
  return bytesText(item.kind === "file" ? item.file.size : item.stream.size_bytes);
}

function changed(item: Item) {
  const at = changedAt(item);
  return at === undefined ? null : <Moment at={at} isDated />;
}
