// The columns of a folder's list.
import { IconBraces, IconFile, IconFileTypeCsv, IconFolder, IconLock, IconTable } from "@tabler/icons-react";
import { Changes } from "@/parts/Changes";
import { bytesText, countText, nameText } from "@/parts/formats";
import { DATED, Moment } from "@/parts/Moment";
import type { Column } from "@/parts/VirtualGrid";
import type { Item } from "./items";

export const ITEM_COLUMNS: readonly Column<Item>[] = [
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
    cell: (item) =>
      item.kind === "stream" && item.stream.last ? <Changes counts={item.stream.last.counts} /> : null,
  },
  { id: "size", header: "Size", width: "76px", align: "right", isSortable: true, isExtra: true, cell: size },
  { id: "changed", header: "Changed", width: DATED, align: "right", isSortable: true, cell: changed },
];

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
  const at =
    item.kind === "file"
      ? item.file.modified
      : item.kind === "stream"
        ? item.stream.last?.timestamp
        : undefined;
  return at === undefined ? null : <Moment at={at} isDated />;
}
