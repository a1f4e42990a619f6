// What went wrong, why, what to do, and the request's id to give to whoever looks after the service.
import { Alert, Button, Group, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { asProblem } from "@/api/problem";
import { CopyText } from "./CopyText";

export function ProblemNote({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const problem = asProblem(error);
  return (
    <Alert
      color="red"
      variant="light"
      role="alert"
      icon={<IconAlertTriangle size={18} />}
      className="problem"
      title={problem.title}
    >
      {problem.cause && <Text size="sm">{problem.cause}</Text>}
      {problem.remedy && <Text size="sm">{problem.remedy}</Text>}
      <Group gap="sm" mt="xs">
        {onRetry && (
          <Button size="compact-sm" variant="default" onClick={onRetry}>
            Try again
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
