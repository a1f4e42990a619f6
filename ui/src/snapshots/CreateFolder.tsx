// A new folder in the one that is shown.
import { useQueryClient } from "@tanstack/react-query";
import { createFolder } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { usePanel } from "@/navigation/panel";
import { NameDialog } from "@/parts/NameDialog";

export function CreateFolder({ folder, onClose }: { folder: string; onClose: () => void }) {
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
