// What every way of bringing back has in common: the effect first, then one button, then the new version.
import { Button, Group, Stack, Text } from "@mantine/core";
import {
  type UseMutationResult,
  type UseQueryResult,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import type { ReactNode } from "react";
import { tenantKey } from "@/api/place";
import { NOTHING_OPEN, usePanel } from "@/navigation/panel";
import { Dialog } from "@/parts/Dialog";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { tell } from "@/parts/toasts";

interface Done {
  tenant_version: number;
}

/** Carries the restoration out, and ends at the history with the version that it made. */
export function useRestoring<T extends Done>(act: () => Promise<T>, onClose: () => void) {
  const { place, go } = usePanel();
  const client = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: async (done) => {
      onClose();
      await client.invalidateQueries({ queryKey: tenantKey(place) });
      tell(`Restored as version ${done.tenant_version}.`);
      go({ ...NOTHING_OPEN, panel: "history" });
    },
  });
}

interface RestoreFrameProps<T extends Done> {
  title: string;
  effect: UseQueryResult<T>;
  restoring: UseMutationResult<T, Error, void>;
  isEmpty: boolean;
  /** What is said where there is nothing to do. */
  emptyText: string;
  onClose: () => void;
  loadingLabel?: string;
  children: ReactNode;
}

export function RestoreFrame<T extends Done>(props: RestoreFrameProps<T>) {
  const { title, effect, restoring, isEmpty, emptyText, onClose, loadingLabel, children } = props;
  return (
    <Dialog onClose={onClose} title={title} size="80%">
      <Stack>
        {effect.isPending && <LateSkeleton lines={4} label={loadingLabel} />}
        {effect.isError && <ProblemNote error={effect.error} onRetry={() => effect.refetch()} />}
        {children}
        {restoring.isError && <ProblemNote error={restoring.error} />}
        <Group justify="space-between">
          <Text size="sm" c="dimmed">
            {isEmpty ? emptyText : "This creates a new version. Later versions are kept."}
          </Text>
          <Group>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button
              data-autofocus
              disabled={!effect.data || isEmpty}
              loading={restoring.isPending}
              onClick={() => restoring.mutate()}
            >
              Restore
            </Button>
          </Group>
        </Group>
      </Stack>
    </Dialog>
  );
}
