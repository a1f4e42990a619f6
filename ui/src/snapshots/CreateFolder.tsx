// A new folder in the one that is shown.
import { Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { createFolder } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { ProblemNote } from "@/parts/ProblemNote";
import { usePanel } from "@/tenants/panel";

export function CreateFolder({
  folder,
  isOpen,
  onClose,
}: {
  folder: string;
  isOpen: boolean;
  onClose: () => void;
}) {
  const { place } = usePanel();
  const client = useQueryClient();
  const [name, setName] = useState("");
  const creating = useMutation({
    mutationFn: () => createFolder(place, folder ? `${folder}/${name.trim()}` : name.trim()),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: tenantKey(place) });
      setName("");
      onClose();
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    creating.mutate();
  }
  return (
    <Modal opened={isOpen} onClose={onClose} title="Create folder">
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            data-autofocus
            required
            label="Name"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          {creating.isError && <ProblemNote error={creating.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={creating.isPending}>
              Create
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
