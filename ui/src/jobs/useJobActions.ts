// What can be done with a job: run again under another id, asked to end, or, where it is held, decided about.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { cancelJob, discardJob, dryRunJob, publishJob, repeatJob } from "@/api/changes";
import { type Place, tenantKey } from "@/api/client";
import { allJobsKey } from "@/api/queries";
import type { Job } from "@/api/types";
import { tell, tellProblem } from "@/parts/toasts";

export function isOpen(job: Job): boolean {
  return job.finished === null && !job.cancel_requested;
}

/** Whether it ended without success, and its input may still be there: the file of an import is not. */
export function canBeTried(job: Job): boolean {
  return job.finished !== null && job.status !== "succeeded" && !isBuiltIn(job);
}

/** Whether it made a version by a script, whose input may be kept. */
export function canBeReplayed(job: Job): boolean {
  return typeof job.outcome?.tenant_version === "number" && !isBuiltIn(job);
}

function isBuiltIn(job: Job): boolean {
  return job.import_stream !== null || job.replays.length > 0;
}

const ENDINGS = {
  cancel: cancelJob,
  discard: discardJob,
  publish: publishJob,
};
type Ending = keyof typeof ENDINGS;

export function useJobActions(onRepeated?: (again: Job) => void) {
  const client = useQueryClient();
  const refresh = useCallback(
    async (place: Place, jobId: string) => {
      await Promise.all([
        client.invalidateQueries({ queryKey: allJobsKey(place.environment) }),
        client.invalidateQueries({ queryKey: [...tenantKey(place), "jobs"] }),
        client.invalidateQueries({ queryKey: [...tenantKey(place), "job", jobId] }),
      ]);
    },
    [client],
  );
  const repeating = useMutation({
    mutationFn: ({ place, jobId, isDry }: { place: Place; jobId: string; isDry: boolean }) =>
      isDry ? dryRunJob(place, jobId) : repeatJob(place, jobId),
    onSuccess: async (again, { place, jobId }) => {
      await refresh(place, jobId);
      if (onRepeated) onRepeated(again);
      else tell(`${jobId} runs again as ${again.job_id}.`);
    },
    onError: tellProblem,
  });
  const ending = useMutation({
    mutationFn: ({ place, jobId, how }: { place: Place; jobId: string; how: Ending }) =>
      ENDINGS[how](place, jobId),
    onError: tellProblem,
    onSettled: (_job, _error, { place, jobId }) => refresh(place, jobId),
  });
  const { mutate: repeat } = repeating;
  const { mutate: end } = ending;
  return {
    isBusy: repeating.isPending || ending.isPending,
    repeat: useCallback(
      (place: Place, jobId: string, isDry = false) => repeat({ place, jobId, isDry }),
      [repeat],
    ),
    end: useCallback((place: Place, jobId: string, how: Ending) => end({ place, jobId, how }), [end]),
  };
}
