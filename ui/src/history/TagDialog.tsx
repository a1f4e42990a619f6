// A name for a version, which is then kept whatever the retention says.
import { Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { setTag } from "@/api/changes";
import { tenantKey } from "@/api/place";
import { ProblemNote } from "@/parts/ProblemNote";
import { usePanel } from "@/tenants/panel";

export function TagDialog({ version, onClose }: { version: number; onClose: () => void }) {
  const { place } = usePanel();
  const client = useQueryClient();
  const [name, setName] = useState("");
  const tagging = useMutation({
    mutationFn: () => setTag(place, name.trim(), version),
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ queryKey: tenantKey(place) });
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    tagging.mutate();
  }
  return (
    <Modal opened onClose={onClose} title={`Tag version ${version}`}>
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            data-autofocus
            required
            label="Tag"
            placeholder="before-migration"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          {tagging.isError && <ProblemNote error={tagging.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={tagging.isPending}>
              Tag
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
