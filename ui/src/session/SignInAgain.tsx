// The session has ended under an open page: signing in happens over it, and nothing that is typed goes.
import { Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { address, get } from "@/api/client";
import { whoQuery } from "@/api/queries";
import type { Who } from "@/api/types";
import { Dialog } from "@/parts/dialogs";
import { SignInForm } from "./SignInForm";
import { setEnded } from "./session";

export default function SignInAgain() {
  const client = useQueryClient();
  const before = client.getQueryData(whoQuery.queryKey);

  function onEntered(who: Who) {
    setEnded(false);
    if (before && before.id !== who.id) {
      // What is on the page is of somebody else.
      location.assign("/");
      return;
    }
    client.setQueryData(whoQuery.queryKey, who);
    void client.invalidateQueries();
  }

  // Who signs in in another tab, at the provider say, comes back to this one.
  // biome-ignore lint/correctness/useExhaustiveDependencies: it looks at what is there at that moment
  useEffect(() => {
    function look() {
      get<Who>(address`/session`).then(onEntered, () => {});
    }
    window.addEventListener("focus", look);
    return () => window.removeEventListener("focus", look);
  }, []);

  return (
    <Dialog
      onClose={() => {}}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      title="Your session has ended"
      zIndex={400}
    >
      <Text mb="md">Sign in again; your changes are kept.</Text>
      <SignInForm isInDialog onEntered={onEntered} />
    </Dialog>
  );
}
