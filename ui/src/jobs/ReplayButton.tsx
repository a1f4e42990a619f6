// Runs a job again from its kept input, in a copy of the tenant: a held job shows what that would change.
import { Button } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { replayJobs } from "@/api/changes";
import { tenantKey } from "@/api/client";
import type { Job } from "@/api/types";
import { usePanel } from "@/navigation/panel";
import { tellProblem } from "@/parts/toasts";

export function ReplayButton({ job }: { job: Job }) {
  const { place, go } = usePanel();
  const client = useQueryClient();
  const replaying = useMutation({
    mutationFn: () => replayJobs(place, [job.job_id], job.script),
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: [...tenantKey(place), "jobs"] });
      go({ job: made.job_id, show: undefined });
    },
    onError: tellProblem,
  });
  return (
    <Button
      loading={replaying.isPending}
      onClick={() => replaying.mutate()}
      title="Run it again from its kept input, with its script as it is now, and show what that would change"
    >
      Replay
    </Button>
  );
}
