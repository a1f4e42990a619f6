// Everything behind the sign-in: who is not signed in is sent there and comes back to the same address.
import { useQuery } from "@tanstack/react-query";
import { Navigate, Outlet, useLocation } from "@tanstack/react-router";
import { asProblem } from "@/api/problem";
import { whoQuery } from "@/api/queries";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { Shell } from "@/shell/Shell";

export function SignedIn() {
  const who = useQuery(whoQuery);
  const place = useLocation();
  if (who.isPending) return <LateSkeleton label="Looking who you are" />;
  if (who.isError) {
    if (asProblem(who.error).status === 401)
      return <Navigate to="/sign-in" search={{ to: place.href }} replace />;
    return <ProblemNote error={who.error} onRetry={() => who.refetch()} />;
  }
  return (
    <Shell>
      <Outlet />
    </Shell>
  );
}
