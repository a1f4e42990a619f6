// What stands where content is not: it is being read, it failed, or there is none.
import {
  Alert,
  Box,
  Button,
  Code,
  CopyButton,
  Group,
  Skeleton,
  Stack,
  Text,
  VisuallyHidden,
} from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { type ReactNode, useEffect, useState } from "react";
import { asProblem } from "@/api/problem";
import { CopyText } from "./values";

const PATIENCE_MS = 150;

/** Grey lines in place of what is being read, but only once that takes longer than an eye notices. */
export function LateSkeleton({ lines = 6, label = "Loading" }: { lines?: number; label?: string }) {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div role="status" className="skeleton">
      <VisuallyHidden>{label}</VisuallyHidden>
      {isLate && (
        <Stack gap="sm" p="md">
          {Array.from({ length: lines }, (_, line) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all the same
            <Skeleton key={line} height={16} width={`${90 - (line % 4) * 12}%`} />
          ))}
        </Stack>
      )}
    </div>
  );
}

interface Asked {
  isLoadingError: boolean;
  error: unknown;
  refetch: () => unknown;
}

/** Stands for the answer of a query that is not there: it is being read, or it failed. */
export function Placeholder({ query, ...lines }: { query: Asked; lines?: number; label?: string }) {
  if (!query.isLoadingError) return <LateSkeleton {...lines} />;
  return <ProblemNote error={query.error} onRetry={() => void query.refetch()} />;
}

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

/** What went wrong, why, what to do, and the id of the request. */
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
      {told.cause && <Text>{withCode(told.cause)}</Text>}
      {told.remedy && <Text>{withCode(told.remedy)}</Text>}
      <Group gap="sm" mt="xs">
        {onRetry && <Button onClick={onRetry}>{retryLabel}</Button>}
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

/** Stands where a part of the page failed, so that the rest of it stays. */
export function PartProblem({ error }: { error: unknown }) {
  return (
    <ProblemNote error={error} retryLabel="Load the page again" onRetry={() => window.location.reload()} />
  );
}

/** What stands where nothing is: one sentence, and how something gets there. */
export function EmptyNote({
  title,
  children,
  example,
  isPage = false,
}: {
  title: string;
  /** Whether it is all of its page, whose heading is the title then. */
  isPage?: boolean;
  children?: ReactNode;
  example?: string;
}) {
  return (
    <Stack gap="xs" align="center" className="empty" p="xl">
      <Text size="md" fw={600} m={0} {...(isPage && { component: "h1" as const })}>
        {title}
      </Text>
      {children && (
        <Text c="dimmed" ta="center" maw={460} component="div">
          {children}
        </Text>
      )}
      {example && (
        <Box maw="100%">
          <Code block tabIndex={0}>
            {example}
          </Code>
          <Group justify="flex-end" mt={4}>
            <CopyButton value={example}>
              {({ copied, copy }) => (
                <Button size="compact-xs" variant="subtle" onClick={copy}>
                  {copied ? "Copied" : "Copy"}
                </Button>
              )}
            </CopyButton>
          </Group>
        </Box>
      )}
    </Stack>
  );
}
