// A name for a version, which is then kept whatever the retention says.
import { useQueryClient } from "@tanstack/react-query";
import { setTag } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { usePanel } from "@/navigation/panel";
import { NameDialog } from "@/parts/NameDialog";

export function TagDialog({ version, onClose }: { version: number; onClose: () => void }) {
  const { place } = usePanel();
  const client = useQueryClient();
  return (
    <NameDialog
      title={`Tag version ${version}`}
      label="Tag"
      description="A tagged version is kept regardless of the retention."
      placeholder="before-migration"
      action="Tag"
      onSubmit={async (name) => {
        await setTag(place, name, version);
        await client.invalidateQueries({ queryKey: tenantKey(place) });
      }}
      onClose={onClose}
    />
  );
}
