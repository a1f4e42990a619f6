// Another path for a file: its name, its folder, or both, as one change.
import { useQueryClient } from "@tanstack/react-query";
import { moveFile } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { NameDialog } from "@/parts/NameDialog";
import { offerUndo } from "@/parts/toasts";
import { usePanel } from "@/tenants/panel";

export function MoveFile({ path, onClose }: { path: string; onClose: () => void }) {
  const { place } = usePanel();
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: tenantKey(place) });
  return (
    <NameDialog
      title={`Rename or move ${path}`}
      label="Path"
      description="Folders that are not there yet are made."
      action="Move"
      initial={path}
      onSubmit={async (target) => {
        const moved = await moveFile(place, path, target);
        await refresh();
        offerUndo(`Moved to ${moved.path}.`, () => moveFile(place, moved.path, path).then(refresh));
      }}
      onClose={onClose}
    />
  );
}
