// A tenant by a part of its id.
import { Autocomplete } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { tenantsQuery } from "@/api/queries";

const SHOWN_MAX = 20;

interface TenantFieldProps {
  label: string;
  environment: string;
  value: string | undefined;
  onChoose: (tenant: string) => void;
}

export function TenantField({ label, environment, value, onChoose }: TenantFieldProps) {
  const [text, setText] = useState(value ?? "");
  const tenants = useInfiniteQuery(tenantsQuery(environment));
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = tenants;
  const ids = useMemo(() => tenants.data?.pages.flatMap((page) => page.tenants) ?? [], [tenants.data]);

  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);

  return (
    <Autocomplete
      size="xs"
      label={label}
      placeholder="Part of the id"
      data={ids}
      limit={SHOWN_MAX}
      value={text}
      onChange={setText}
      onOptionSubmit={onChoose}
      onKeyDown={(event) => {
        if (event.key === "Enter" && ids.includes(text)) onChoose(text);
      }}
    />
  );
}
