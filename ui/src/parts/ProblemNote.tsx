// What went wrong, why, what to do, and the request's id to give to whoever looks after the service.
import { Alert, Button, Group, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { asProblem } from "@/api/problem";
import { CopyText } from "./CopyText";

const NO_VERSION = {
  title: "This version is not kept.",
  cause: "It does not exist yet, or the retention deleted it.",
  remedy: "The History tab lists the available versions.",
};
// The library's remedies are calls and commands; who looks at a page goes to another page.
const PAGE_WORDS: Readonly<Record<string, { title?: string; cause?: string; remedy: string }>> = {
  VERSION_NOT_FOUND: NO_VERSION,
  DELTA_VERSION_NOT_FOUND: NO_VERSION,
  STREAM_NOT_FOUND: { cause: "", remedy: "The Snapshots tab lists the available streams." },
};

interface ProblemNoteProps {
  error: unknown;
  onRetry?: () => void;
  retryLabel?: string;
}

export function ProblemNote({ error, onRetry, retryLabel = "Try again" }: ProblemNoteProps) {
  const problem = asProblem(error);
  const told = { ...problem, title: problem.title, ...PAGE_WORDS[problem.code] };
  return (
    <Alert
      color="red"
      variant="light"
      role="alert"
      icon={<IconAlertTriangle size={18} />}
      className="problem"
      title={told.title}
    >
      {told.cause && <Text size="sm">{withCode(told.cause)}</Text>}
      {told.remedy && <Text size="sm">{withCode(told.remedy)}</Text>}
      <Group gap="sm" mt="xs">
        {onRetry && (
          <Button size="compact-sm" variant="default" onClick={onRetry}>
            {retryLabel}
          </Button>
        )}
        {problem.requestId && (
          <Text size="xs" c="dimmed" component="span">
            Request <CopyText text={problem.requestId} label="request id" />
          </Text>
        )}
      </Group>
    </Alert>
  );
}

/** Messages set names of commands and calls between backticks. */
function withCode(text: string): ReactNode[] {
  return text.split("`").map((part, place) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: a text's parts have their places and nothing else
    place % 2 === 1 ? <code key={place}>{part}</code> : part,
  );
}
