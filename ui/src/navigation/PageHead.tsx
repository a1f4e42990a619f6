// The heading of a page, with the environment that it is of.
import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { environmentsQuery } from "@/api/queries";
import { rememberEnvironment, useEnvironment } from "@/session/session";

export function PageHead({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="page-head">
      <h1>{title}</h1>
      <Environment />
      {children}
    </div>
  );
}

function Environment() {
  const current = useEnvironment();
  const { data } = useQuery(environmentsQuery);
  const navigate = useNavigate();
  // The last one that somebody looked at is the one that the next page without an environment is of.
  useEffect(() => {
    if (data?.includes(current)) rememberEnvironment(current);
  }, [data, current]);
  return (
    <Select
      size="xs"
      aria-label="Environment"
      className="page-environment"
      data={[...new Set([...(data ?? []), current])]}
      value={current}
      allowDeselect={false}
      onChange={(env) => {
        if (env === null) return;
        rememberEnvironment(env);
        void navigate({ to: ".", search: { env } as never });
      }}
    />
  );
}
