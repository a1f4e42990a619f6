// Another path for a file or a folder with all below it: its name, the folder it is in, or both, as one change.
import { useQueryClient } from "@tanstack/react-query";
import { moveFile, moveFolder } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { usePanel } from "@/navigation/panel";
import { NameDialog } from "@/parts/NameDialog";
import { offerUndo } from "@/parts/toasts";

export interface Movable {
  kind: "file" | "folder";
  path: string;
}

export function MoveItem({ item, onClose }: { item: Movable; onClose: () => void }) {
  const { place } = usePanel();
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: tenantKey(place) });
  const move = item.kind === "folder" ? moveFolder : moveFile;
  return (
    <NameDialog
      title={`Rename or move ${item.path}`}
      label="Path"
      description={
        item.kind === "folder" ? "Its content moves with it, in one version." : "Missing folders are created."
      }
      action="Move"
      initial={item.path}
      onSubmit={async (target) => {
        const moved = await move(place, item.path, target);
        await refresh();
        offerUndo(`Moved to ${moved.path}.`, () => move(place, moved.path, item.path).then(refresh));
      }}
      onClose={onClose}
    />
  );
}
