// Two tenants side by side: streams with their rows and columns, and files that differ.
import { Button, Modal, Select, Table, Text, Title } from "@mantine/core";
import { useQueries, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import type { Place } from "@/api/place";
import { ALL_FILES_MAX, allFilesQuery, environmentsQuery, overviewQuery, streamQuery } from "@/api/queries";
import { EmptyNote } from "@/parts/EmptyNote";
import { bytesText, countText } from "@/parts/formats";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { useEnvironment } from "@/session/session";
import { columnDifferences, type FilePair, filePairs, type StreamPair, streamPairs } from "./comparison";
import { textsQuery } from "./comparison-queries";
import { TenantField } from "./TenantField";
import "./comparison.css";

const SideBySide = lazy(() => import("@/files/SideBySide"));

export function ComparePage() {
  const search = useSearch({ from: "/signed-in/compare" });
  const navigate = useNavigate();
  const environment = useEnvironment();
  const environments = useQuery(environmentsQuery);
  const other = search.other ?? environment;
  const go = (changes: typeof search) =>
    void navigate({ to: "/compare", search: (before) => ({ ...before, env: environment, ...changes }) });
  return (
    <div className="page">
      <div className="page-head">
        <h1>Compare tenants</h1>
      </div>
      <div className="compared">
        <TenantField
          key={`left ${search.left}`}
          label="Tenant"
          environment={environment}
          value={search.left}
          onChoose={(left) => go({ left })}
        />
        <TenantField
          key={`right ${search.right} ${other}`}
          label="Compare with"
          environment={other}
          value={search.right}
          onChoose={(right) => go({ right })}
        />
        {(environments.data?.length ?? 0) > 1 && (
          <Select
            size="xs"
            label="of the environment"
            data={environments.data ?? []}
            value={other}
            allowDeselect={false}
            onChange={(next) => go({ other: next ?? undefined })}
          />
        )}
      </div>
      {search.left && search.right ? (
        <Comparison
          left={{ environment, tenant: search.left }}
          right={{ environment: other, tenant: search.right }}
        />
      ) : (
        <EmptyNote title="Choose two tenants.">
          Compare the newest versions of their streams, columns and files.
        </EmptyNote>
      )}
    </div>
  );
}

function Comparison({ left, right }: { left: Place; right: Place }) {
  const [one, other] = [useQuery(overviewQuery(left)), useQuery(overviewQuery(right))];
  const failed = one.isError ? one : other.isError ? other : undefined;
  if (failed) return <ProblemNote error={failed.error} onRetry={() => void failed.refetch()} />;
  if (!one.data || !other.data) return <LateSkeleton lines={10} />;
  return (
    <div className="comparison">
      <Streams left={left} right={right} pairs={streamPairs(one.data, other.data)} />
      <Files left={left} right={right} />
    </div>
  );
}

function Streams({ left, right, pairs }: { left: Place; right: Place; pairs: StreamPair[] }) {
  const shared = pairs.filter((pair) => pair.left && pair.right).map((pair) => pair.name);
  const details = (place: Place) => ({ queries: shared.map((name) => streamQuery(place, name)) });
  const [lefts, rights] = [useQueries(details(left)), useQueries(details(right))];
  const names = namesOf(left, right);
  function columns(name: string): string {
    const at = shared.indexOf(name);
    const [one, other] = [lefts[at]?.data, rights[at]?.data];
    if (at < 0) return "";
    if (!one || !other) return lefts[at]?.isError || rights[at]?.isError ? "could not be read" : "…";
    const told = columnDifferences(one, other, names);
    return told.length > 0 ? told.join(", ") : "the same";
  }
  return (
    <section aria-label="Streams">
      <Title order={2} size="h5">
        Streams
      </Title>
      {pairs.length === 0 ? (
        <Text size="sm">Neither tenant has a stream.</Text>
      ) : (
        <Table.ScrollContainer minWidth={320}>
          <Table aria-label="Streams of both">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Stream</Table.Th>
                <Table.Th ta="right">{names[0]}</Table.Th>
                <Table.Th ta="right">{names[1]}</Table.Th>
                <Table.Th>Columns</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {pairs.map((pair) => (
                <Table.Tr key={pair.name}>
                  <Table.Td>{pair.name}</Table.Td>
                  {[pair.left, pair.right].map((stream, side) => (
                    <Table.Td key={names[side]} ta="right" className="number">
                      {stream ? (
                        <span
                          title={bytesText(stream.size_bytes)}
                        >{`${countText(stream.rows)} ${stream.rows === 1 ? "row" : "rows"}`}</span>
                      ) : (
                        <span className="mark-gone">missing</span>
                      )}
                    </Table.Td>
                  ))}
                  <Table.Td>{columns(pair.name)}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
    </section>
  );
}

function Files({ left, right }: { left: Place; right: Place }) {
  const [one, other] = [useQuery(allFilesQuery(left)), useQuery(allFilesQuery(right))];
  const [open, setOpen] = useState<string>();
  const names = namesOf(left, right);
  const failed = one.isError ? one : other.isError ? other : undefined;
  if (failed) return <ProblemNote error={failed.error} onRetry={() => void failed.refetch()} />;
  if (!one.data || !other.data) return <LateSkeleton lines={6} />;
  const [pairs, same] = filePairs(one.data.files, other.data.files);
  const isWhole = one.data.isWhole && other.data.isWhole;
  return (
    <section aria-label="Files">
      <Title order={2} size="h5">
        Files
      </Title>
      <Text size="sm" role="status">
        {`${countText(same)} ${same === 1 ? "is" : "are"} the same, ${countText(pairs.length)} differ.`}
        {!isWhole && ` Only the first ${countText(ALL_FILES_MAX)} files of each tenant are compared.`}
      </Text>
      {pairs.length > 0 && (
        <Table.ScrollContainer minWidth={320}>
          <Table aria-label="Files that differ">
            <Table.Tbody>
              {pairs.map(({ path, kind }) => (
                <Table.Tr key={path}>
                  <Table.Td>{path}</Table.Td>
                  <Table.Td>{fact(kind, names)}</Table.Td>
                  <Table.Td ta="right">
                    {kind === "differs" && (
                      <Button
                        size="compact-xs"
                        variant="default"
                        aria-label={`Compare ${path}`}
                        onClick={() => setOpen(path)}
                      >
                        Compare
                      </Button>
                    )}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      {open !== undefined && (
        <Texts left={left} right={right} path={open} onClose={() => setOpen(undefined)} />
      )}
    </section>
  );
}

interface TextsProps {
  left: Place;
  right: Place;
  path: string;
  onClose: () => void;
}

function Texts({ left, right, path, onClose }: TextsProps) {
  const texts = useQuery(textsQuery(left, right, path));
  const names = namesOf(left, right);
  return (
    <Modal opened onClose={onClose} title={`${path} of ${names[0]} and ${names[1]}`} size="90%">
      {texts.isPending ? (
        <LateSkeleton />
      ) : texts.isError ? (
        <ProblemNote error={texts.error} onRetry={() => void texts.refetch()} />
      ) : texts.data === null ? (
        <EmptyNote title="This file is not text." />
      ) : (
        <div className="editor editor-tall">
          <Suspense fallback={<LateSkeleton />}>
            <SideBySide path={path} left={texts.data.left} right={texts.data.right} />
          </Suspense>
        </div>
      )}
    </Modal>
  );
}

function fact(kind: FilePair["kind"], [left, right]: [string, string]): string {
  if (kind === "sealed") return "sealed: not compared";
  return kind === "differs" ? "differs" : `in ${kind === "left" ? left : right} only`;
}

/** What each is called: its id, with the environment where that tells them apart. */
function namesOf(left: Place, right: Place): [string, string] {
  const isElsewhere = left.environment !== right.environment;
  const name = (place: Place) => (isElsewhere ? `${place.environment}/${place.tenant}` : place.tenant);
  return [name(left), name(right)];
}
