// The page of who is not signed in: afterwards one comes to the address that was asked for.
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { whoQuery } from "@/api/queries";
import type { Who } from "@/api/types";
import { EntryFrame } from "./EntryFrame";
import { setEnded } from "./ended";
import { SignInForm } from "./SignInForm";

export function SignInPage() {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { to } = useSearch({ from: "/sign-in" });
  const [link] = useState(() => window.location.hash.slice(1));

  function onEntered(who: Who) {
    setEnded(false);
    client.clear();
    client.setQueryData(whoQuery.queryKey, who);
    // Only an address of these pages: never one that a link could have brought from elsewhere.
    const isOurs = to?.startsWith("/") && !to.startsWith("//") && !to.startsWith("/\\");
    void navigate({ href: isOurs ? to : "/", replace: true } as never);
  }

  return (
    <EntryFrame>
      <SignInForm to={to} link={link} onEntered={onEntered} />
    </EntryFrame>
  );
}
