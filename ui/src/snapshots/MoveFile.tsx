// Another path for a file: its name, its folder, or both, as one change.
import { Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { moveFile } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { ProblemNote } from "@/parts/ProblemNote";
import { offerUndo } from "@/parts/toasts";
import { usePanel } from "@/tenants/panel";

export function MoveFile({ path, onClose }: { path: string; onClose: () => void }) {
  const { place } = usePanel();
  const client = useQueryClient();
  const [target, setTarget] = useState(path);
  const refresh = () => client.invalidateQueries({ queryKey: tenantKey(place) });
  const moving = useMutation({
    mutationFn: () => moveFile(place, path, target.trim()),
    onSuccess: async (moved) => {
      await refresh();
      onClose();
      offerUndo(`Moved to ${moved.path}.`, () => moveFile(place, moved.path, path).then(refresh));
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    moving.mutate();
  }
  return (
    <Modal opened onClose={onClose} title={`Rename or move ${path}`}>
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            data-autofocus
            required
            label="Path"
            description="Folders that are not there yet are made."
            value={target}
            onChange={(event) => setTarget(event.currentTarget.value)}
          />
          {moving.isError && <ProblemNote error={moving.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={moving.isPending} disabled={target.trim() === path}>
              Move
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
