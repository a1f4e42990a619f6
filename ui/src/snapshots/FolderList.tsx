// A folder's list with its four actions: Upload, Create folder, Download, Delete.
import { TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { folderQuery, overviewQuery } from "@/api/queries";
import { useSealing } from "@/files/useSealing";
import { usePanel } from "@/navigation/panel";
import { EmptyNote } from "@/parts/EmptyNote";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { useShortcuts } from "@/parts/shortcuts";
import { sortedBy, sortFrom, sortText } from "@/parts/sorting";
import { VirtualGrid } from "@/parts/VirtualGrid";
import { useMay } from "@/session/session";
import { UploadList } from "@/uploads/UploadList";
import { Breadcrumb } from "./Breadcrumb";
import { CreateFolder } from "./CreateFolder";
import { DeleteDialog } from "./DeleteDialog";
import { DropZone } from "./DropZone";
import { useDownload } from "./download";
import { FolderActions } from "./FolderActions";
import { ITEM_COLUMNS } from "./itemColumns";
import { type Item, itemsOf, shownItems } from "./items";
import { type Movable, MoveItem } from "./MoveItem";
import { SelectionBar } from "./SelectionBar";
import { useDeletion } from "./useDeletion";
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
  const content = useInfiniteQuery(folderQuery(place, folder, version));
  const overview = useQuery(overviewQuery(place, version));
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = content;
  const all = useMemo(
    () => itemsOf(folder, content.data?.pages ?? [], overview.data?.streams ?? []),
    [folder, content.data, overview.data],
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
  const sealing = useSealing(() => setSelected(new Set()));
  const deletion = useDeletion(() => setSelected(new Set()));

  // Sorting and search are over the whole folder, so all of its pages are fetched.
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
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
    else if (event.key === "d" && !event.ctrlKey && !event.metaKey) download(those);
    else if (event.key === "Backspace" && folder)
      go({ path: folder.split("/").slice(0, -1).join("/") || undefined });
  }

  const isEmpty = !content.isPending && !overview.isPending && all.length === 0;
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
          onDownload={() => download(chosen)}
          onDelete={() => deletion.ask(chosen)}
        />
      </div>
      <UploadList place={place} />
      {content.isLoadingError ? (
        <ProblemNote error={content.error} onRetry={() => content.refetch()} />
      ) : content.isPending || overview.isPending ? (
        <LateSkeleton lines={10} />
      ) : isEmpty ? (
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
      <DeleteDialog deletion={deletion} />
    </DropZone>
  );
}

/** Streams keep their names: scripts know them by these. */
function movableOf(item: Item): Movable | null {
  if (item.kind === "stream") return null;
  return { kind: item.kind, path: item.kind === "file" ? item.file.path : item.path };
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
