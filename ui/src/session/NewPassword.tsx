// A field for a new password.
import { PasswordInput } from "@mantine/core";

const LENGTH_MIN = 12;

interface NewPasswordProps {
  value: string;
  onChange: (password: string) => void;
}

export function NewPassword({ value, onChange }: NewPasswordProps) {
  return (
    <PasswordInput
      label="New password"
      description={`At least ${LENGTH_MIN} characters: some words of your own will do.`}
      required
      minLength={LENGTH_MIN}
      autoComplete="new-password"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
