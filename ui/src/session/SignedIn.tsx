// Everything behind the sign-in; who is not signed in is sent there first (see the router) and comes back.
import { useQuery } from "@tanstack/react-query";
import { Outlet } from "@tanstack/react-router";
import { useEffect } from "react";
import { whoQuery } from "@/api/queries";
import { Shell } from "@/shell/Shell";
import { setWholeBytesMax } from "@/uploads/queue";

export function SignedIn() {
  const bytesMax = useQuery(whoQuery).data?.body_bytes_max;
  useEffect(() => {
    if (bytesMax !== undefined) setWholeBytesMax(bytesMax);
  }, [bytesMax]);
  return (
    <Shell>
      <Outlet />
    </Shell>
  );
}
