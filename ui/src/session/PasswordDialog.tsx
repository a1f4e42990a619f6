// Who is signed in changes their own password; their other sessions end, and this one begins anew.
import { PasswordInput, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { changePassword, signIn } from "@/api/changes";
import { whoQuery } from "@/api/queries";
import { Dialog } from "@/parts/Dialog";
import { FormFooter } from "@/parts/FormFooter";
import { tell } from "@/parts/toasts";
import { setEnded } from "./ended";
import { NewPassword } from "./NewPassword";

export function PasswordDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const client = useQueryClient();
  const [old, setOld] = useState("");
  const [password, setPassword] = useState("");
  const changing = useMutation({
    mutationFn: async () => {
      await changePassword(old, password);
      return signIn({ name, password });
    },
    onSuccess: (who) => {
      // What was asked for in between was refused.
      setEnded(false);
      client.setQueryData(whoQuery.queryKey, who);
      void client.invalidateQueries();
      tell("The password is changed.");
      onClose();
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!changing.isPending) changing.mutate();
  }
  return (
    <Dialog onClose={onClose} title="Change password">
      <form onSubmit={submit}>
        <Stack>
          <Text size="sm">Wherever else you are signed in you are signed out.</Text>
          <PasswordInput
            label="Current password"
            required
            data-autofocus
            autoComplete="current-password"
            value={old}
            onChange={(event) => setOld(event.currentTarget.value)}
          />
          <NewPassword value={password} onChange={setPassword} />
          <FormFooter sending={changing} verb="Change" onClose={onClose} />
        </Stack>
      </form>
    </Dialog>
  );
}
