// The list of tenants. The panel of one of them slides in over it.
import { Button, TextInput } from "@mantine/core";
import { IconPlus, IconSearch } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useMemo, useState } from "react";
import { tenantsQuery } from "@/api/queries";
import { EmptyNote } from "@/parts/EmptyNote";
import { countText } from "@/parts/formats";
import { LateSkeleton } from "@/parts/LateSkeleton";
import { ProblemNote } from "@/parts/ProblemNote";
import { useEnvironment, useMay } from "@/session/session";
import { useChosenTenants } from "../overview/useFindings";
import { CreateTenant } from "./CreateTenant";
import { CHIP_LABELS, TenantChips } from "./TenantChips";
import { TenantTable } from "./TenantTable";
import "./tenants.css";

export function TenantsPage() {
  const environment = useEnvironment();
  const search = useSearch({ from: "/signed-in/tenants" });
  const navigate = useNavigate();
  const may = useMay();
  const { tenant: open } = useParams({ strict: false });
  const [isCreating, setCreating] = useState(false);
  const tenants = useInfiniteQuery(tenantsQuery(environment));
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = tenants;
  const ids = useMemo(() => tenants.data?.pages.flatMap((page) => page.tenants) ?? [], [tenants.data]);
  const text = search.q ?? "";
  const chosen = useChosenTenants(environment, search.only);
  const shown = useMemo(
    () => ids.filter((id) => id.toLowerCase().includes(text.toLowerCase()) && (chosen.all || chosen.has(id))),
    [ids, text, chosen],
  );

  // Ids are short: all pages are fetched, so that the search finds every tenant.
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);

  // What one is about to open is there by then.
  useEffect(() => void import("./TenantPanel"), []);

  function openTenant(tenant: string) {
    void navigate({
      to: "/tenants/$tenant",
      params: { tenant },
      search: (before) => ({ ...before, env: environment, panel: "snapshots" as const }),
    });
  }

  function onSearchKey(event: KeyboardEvent) {
    if (event.key === "Enter" && shown[0] !== undefined)
      openTenant(shown.find((id) => id === text) ?? shown[0]);
  }

  return (
    <div className="page">
      <div className="page-head">
        <h1>Tenants</h1>
        <TextInput
          aria-label="Search tenants"
          placeholder="Search"
          leftSection={<IconSearch size={15} />}
          value={text}
          autoFocus={open === undefined}
          onChange={(event) =>
            navigate({
              to: ".",
              search: (before) => ({ ...before, q: event.currentTarget.value || undefined }),
              replace: true,
            })
          }
          onKeyDown={onSearchKey}
        />
        <TenantChips
          only={search.only}
          onOnly={(only) =>
            void navigate({ to: ".", search: (before) => ({ ...before, only }), replace: true })
          }
        />
        <Link className="text-link" to="/compare" search={{ env: environment }}>
          Compare two
        </Link>
        {may("snapshots:write") && (
          <Button size="sm" leftSection={<IconPlus size={15} />} onClick={() => setCreating(true)}>
            Create tenant
          </Button>
        )}
      </div>
      {tenants.isPending ? (
        <LateSkeleton lines={12} />
      ) : tenants.isLoadingError ? (
        <ProblemNote error={tenants.error} onRetry={() => tenants.refetch()} />
      ) : ids.length === 0 ? (
        <EmptyNote
          title={`There is no tenant in ${environment} yet.`}
          example={`freezeframe run etl.py --environment ${environment} --tenant acme`}
        >
          A job's first <code>update_snapshot</code>, or the button above, creates one.
        </EmptyNote>
      ) : chosen.error ? (
        <ProblemNote error={chosen.error} onRetry={chosen.retry} />
      ) : shown.length === 0 && chosen.isLooking ? (
        <LateSkeleton lines={12} label="Reading all tenants" />
      ) : shown.length === 0 && search.only ? (
        <EmptyNote title={`No tenant is “${CHIP_LABELS[search.only].toLowerCase()}”.`} />
      ) : shown.length === 0 ? (
        <EmptyNote title={`No tenant's id contains “${text}”.`}>
          {countText(ids.length)} tenants are in {environment}. Search another environment, or for part of the
          id.
        </EmptyNote>
      ) : (
        <TenantTable
          environment={environment}
          tenants={shown}
          total={ids.length}
          open={open}
          sort={search.sort}
          onSort={(sort) =>
            void navigate({ to: ".", search: (before) => ({ ...before, sort }), replace: true })
          }
          onOpen={openTenant}
        />
      )}
      {isCreating && (
        <CreateTenant environment={environment} onClose={() => setCreating(false)} onCreated={openTenant} />
      )}
      <Outlet />
    </div>
  );
}
