// Everything behind the sign-in; who is not signed in is sent there first (see the router) and comes back.
import { useQuery } from "@tanstack/react-query";
import { Outlet } from "@tanstack/react-router";
import { lazy, Suspense, useEffect } from "react";
import { whoQuery } from "@/api/queries";
import { useEnded } from "@/session/ended";
import { setWholeBytesMax } from "@/uploads/queue";
import { Shell } from "./Shell";

const SignInAgain = lazy(() => import("@/session/SignInAgain"));

export function SignedIn() {
  const isEnded = useEnded();
  const bytesMax = useQuery(whoQuery).data?.body_bytes_max;
  useEffect(() => {
    if (bytesMax !== undefined) setWholeBytesMax(bytesMax);
  }, [bytesMax]);
  return (
    <Shell>
      <Outlet />
      {isEnded && (
        <Suspense>
          <SignInAgain />
        </Suspense>
      )}
    </Shell>
  );
}
