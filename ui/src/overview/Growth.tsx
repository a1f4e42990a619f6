// The tenants by how much their rows grew or shrank, each with a line of its rows over 30 days.
import { Link } from "@tanstack/react-router";
import type { TenantWithFindings } from "@/api/types";
import { bytesText, countText } from "@/parts/formats";

const SHOWN_MAX = 50;
const WIDTH = 120;
const HEIGHT = 20;

interface GrowthProps {
  tenants: readonly TenantWithFindings[];
  environment: string;
  days: number;
}

export function Growth({ tenants, environment, days }: GrowthProps) {
  const moved = grown(tenants, days);
  return (
    <section className="overview-part" aria-label="Growth of tenants">
      <h2>
        Growth of tenants <span className="overview-count number">{countText(moved.length)}</span>
      </h2>
      <ul className="overview-growth">
        {moved.slice(0, SHOWN_MAX).map((one) => (
          <li key={one.tenant}>
            <Link
              to="/tenants/$tenant"
              params={{ tenant: one.tenant }}
              search={{ env: environment, panel: "history" }}
              className="overview-line"
            >
              <strong>{one.tenant}</strong>
              <RowsLine tenant={one.tenant} values={one.rows_by_day} />
              <span className="number">
                {one.change > 0 && "+"}
                {countText(one.change)} {Math.abs(one.change) === 1 ? "row" : "rows"}
              </span>
              <span className="overview-at number">{bytesText(one.size_bytes)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The tenants whose rows became more or fewer, those that changed most first. */
export function grown(tenants: readonly TenantWithFindings[], days: number) {
  return tenants
    .map((one) => ({ ...one, change: changeOf(one.rows_by_day, days) }))
    .filter((one) => one.change !== 0)
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
}

function changeOf(rowsByDay: readonly number[], days: number): number {
  return (rowsByDay.at(-1) ?? 0) - (rowsByDay.at(-1 - days) ?? rowsByDay[0] ?? 0);
}

function RowsLine({ tenant, values }: { tenant: string; values: readonly number[] }) {
  const most = Math.max(...values, 1);
  const step = WIDTH / 30;
  const left = WIDTH - step * (values.length - 1);
  const points = values.map((value, at) => `${left + at * step},${1 + (1 - value / most) * (HEIGHT - 2)}`);
  return (
    <svg
      className="growth-line"
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={`${tenant}: ${countText(values[0] ?? 0)} rows ${values.length - 1} days ago, ${countText(values.at(-1) ?? 0)} now`}
    >
      <polyline points={points.join(" ")} />
    </svg>
  );
}
