// Why somebody changes something, for the history; the service may require it, though of no dry run.
import { TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { whoQuery } from "@/api/queries";

const LETTERS_MAX = 1000;

export interface Reason {
  message: string;
  field: ReactNode;
  isRequired: boolean;
  isMissing: boolean;
}

export function useReason(isDry = false): Reason {
  const isRequired = (useQuery(whoQuery).data?.requires_reasons ?? false) && !isDry;
  const [text, setText] = useState("");
  const message = text.trim();
  const field = (
    <TextInput
      size="xs"
      label="Reason"
      placeholder="Shown in the history"
      required={isRequired}
      maxLength={LETTERS_MAX}
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
    />
  );
  return { message, field, isRequired, isMissing: isRequired && message === "" };
}
