// Who or what made a version: a job, or a person whose request the service gave an id of its own (pure).

const REQUEST = "request-";

interface Made {
  job_id: string | null;
  who?: string;
}

/** The job that made it; null where it was a request to the service. */
export function jobOf({ job_id }: Made): string | null {
  return job_id?.startsWith(REQUEST) ? null : job_id;
}

export function makerText(made: Made): string {
  return jobOf(made) ?? (made.who || "unknown");
}
