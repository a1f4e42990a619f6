// Downloads: one file as it is, one stream as CSV, several of anything as a zip.
import { bundleAddress, exportAddress, fileAddress } from "@/api/place";
import { usePanel } from "@/navigation/panel";
import { save } from "@/parts/save";
import type { Item } from "./items";

export function useDownload(): (items: readonly Item[]) => void {
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
