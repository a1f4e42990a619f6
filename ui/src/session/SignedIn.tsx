// Everything behind the sign-in; who is not signed in is sent there first (see the router) and comes back.
import { Outlet } from "@tanstack/react-router";
import { Shell } from "@/shell/Shell";

export function SignedIn() {
  return (
    <Shell>
      <Outlet />
    </Shell>
  );
}
