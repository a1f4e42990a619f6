// Who is signed in changes their own password; all their sessions end, this one too.
import { Modal, PasswordInput, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { changePassword } from "@/api/changes";
import { FormFooter } from "@/parts/FormFooter";
import { useFocusBack } from "@/parts/useFocusBack";
import { NewPassword } from "./NewPassword";

export function PasswordDialog({ onClose, onChanged }: { onClose: () => void; onChanged: () => void }) {
  useFocusBack();
  const [old, setOld] = useState("");
  const [password, setPassword] = useState("");
  const changing = useMutation({
    mutationFn: () => changePassword(old, password),
    onSuccess: onChanged,
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (!changing.isPending) changing.mutate();
  }
  return (
    <Modal opened onClose={onClose} title="Change password">
      <form onSubmit={submit}>
        <Stack>
          <Text size="sm">
            You sign in anew with it afterwards, here and wherever else you are signed in.
          </Text>
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
    </Modal>
  );
}
