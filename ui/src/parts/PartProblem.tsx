// Stands where a part of the page failed, so that the rest of it stays.
import { ProblemNote } from "./ProblemNote";

export function PartProblem({ error }: { error: unknown }) {
  return (
    <ProblemNote error={error} retryLabel="Load the page again" onRetry={() => window.location.reload()} />
  );
}
