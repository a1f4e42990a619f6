// The last `freezeframe prove` on this store, for admins: each promise, what was tried, and what broke it.
import { Badge, Group, List, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { address } from "@/api/client";
import { asProblem } from "@/api/problem";
import { oneQuery } from "@/api/queries";
import type { ProofReport, ProofResult } from "@/api/types";
import { countText } from "@/parts/formats";
import { EmptyNote, LateSkeleton, ProblemNote } from "@/parts/states";
import { Moment } from "@/parts/values";

const MISSING = 404;
const proofQuery = oneQuery<ProofReport>(["proof"], address`/proof`, {}, 0);

export function ProofPage() {
  const report = useQuery(proofQuery);
  return (
    <div className="page">
      <div className="page-head">
        <h1>Proof</h1>
        {report.data && <Verdict verdict={report.data.verdict} />}
      </div>
      {report.isPending ? (
        <LateSkeleton />
      ) : report.data ? (
        <Report report={report.data} />
      ) : asProblem(report.error).status === MISSING ? (
        <EmptyNote title="No proof has run on this store yet." example="freezeframe prove --minutes 10">
          <code>freezeframe prove</code> lets processes race, kills them, makes calls fail and damages files,
          in a folder of its own that it deletes at the end. This page shows its result.
        </EmptyNote>
      ) : (
        <ProblemNote error={report.error} onRetry={() => report.refetch()} />
      )}
    </div>
  );
}

function Report({ report }: { report: ProofReport }) {
  return (
    <Stack>
      <Text c="dimmed">
        Ended <Moment at={report.finished} />. To repeat it:{" "}
        <code>freezeframe prove --seed {report.seed}</code>
      </Text>
      {report.proofs.map((proof) => (
        <Proof key={proof.name} proof={proof} />
      ))}
    </Stack>
  );
}

function Proof({ proof }: { proof: ProofResult }) {
  const counts = Object.entries(proof.counts).map(
    ([what, count]) => `${countText(count)} ${what.replaceAll("_", " ")}`,
  );
  return (
    <section aria-label={proof.name}>
      <Group gap="xs">
        <Title order={2} size="h5">
          {proof.name}
        </Title>
        <Verdict verdict={proof.verdict} />
      </Group>
      <Text>{proof.promise}</Text>
      <Text size="xs" c="dimmed">
        {[...counts, `${proof.seconds} s`].join(" · ")}
      </Text>
      {proof.violations.length > 0 && (
        <List size="sm" mt={4}>
          {proof.violations.map((seen) => (
            <List.Item key={seen}>{seen}</List.Item>
          ))}
        </List>
      )}
    </section>
  );
}

function Verdict({ verdict }: { verdict: ProofReport["verdict"] }) {
  const isKept = verdict === "kept";
  return (
    <Badge variant="light" color={isKept ? "green" : "red"}>
      {isKept ? "kept" : "broken"}
    </Badge>
  );
}
