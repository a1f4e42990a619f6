// Downloads: one file as it is, one stream as CSV, several of anything as a zip.
import { bundleAddress, exportAddress, fileAddress } from "@/api/place";
import { usePanel } from "@/tenants/panel";
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

/** Has the browser save what is at an address, under the name that the service gives it. */
export function save(address: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = "";
  document.body.append(link);
  link.click();
  link.remove();
}
