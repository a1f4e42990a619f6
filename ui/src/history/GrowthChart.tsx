// Rows and bytes over time; dragging over a period leaves its versions in the list.
import { useElementSize } from "@mantine/hooks";
import { type PointerEvent, useState } from "react";
import { bytesText, countText, exactText } from "@/parts/formats";
import { bytesAxis, type ChartPoint, countAxis, type Period, stepsPath, timeTicks } from "./growth";

const HEIGHT = 112;
const PAD = { left: 52, right: 60, top: 8, bottom: 22 };
const DOTS_MAX = 40;
const TICK_WIDTH = 110;
/** A click is not a period. */
const DRAGGED_MIN = 3;
const TIP_WIDTH = 210;

interface GrowthChartProps {
  points: readonly ChartPoint[];
  period: Period | null;
  onPeriod: (period: Period) => void;
}

export default function GrowthChart({ points, period, onPeriod }: GrowthChartProps) {
  const { ref, width } = useElementSize();
  const [begun, setBegun] = useState<number | null>(null);
  const [pointer, setPointer] = useState<number | null>(null);
  const last = points.at(-1);
  const first = points[0]?.at ?? 0;
  const span = Math.max(1, (last?.at ?? 0) - first);
  const right = Math.max(PAD.left + 1, width - PAD.right);
  const bottom = HEIGHT - PAD.bottom;
  const rows = countAxis(Math.max(1, ...points.map((point) => point.rows)));
  const bytes = bytesAxis(Math.max(1, ...points.map((point) => point.bytes)));
  const byteTicks = Array.from(
    { length: bytes.max / bytes.interval + 1 },
    (_, step) => step * bytes.interval,
  );
  const x = (at: number) => PAD.left + ((at - first) / span) * (right - PAD.left);
  const y = (value: number, max: number) => bottom - (value / max) * (bottom - PAD.top);
  const timeAt = (place: number) => first + ((place - PAD.left) / (right - PAD.left)) * span;
  const place = (event: PointerEvent<SVGSVGElement>) =>
    Math.min(right, Math.max(PAD.left, event.clientX - event.currentTarget.getBoundingClientRect().left));
  const line = (value: (point: ChartPoint) => number, max: number) =>
    stepsPath(points.map((point) => [x(point.at), y(value(point), max)]));
  const rowsLine = line((point) => point.rows, rows.max);
  const shown = pointer === null ? undefined : points.findLast((point) => x(point.at) <= pointer + 1);
  const chosen =
    begun !== null && pointer !== null
      ? { from: Math.min(begun, pointer), to: Math.max(begun, pointer) }
      : period && { from: Math.max(PAD.left, x(period.from)), to: Math.min(right, x(period.to)) };

  function end() {
    setBegun(null);
    if (chosen && begun !== null && chosen.to - chosen.from >= DRAGGED_MIN)
      onPeriod({ from: Math.floor(timeAt(chosen.from)), to: Math.ceil(timeAt(chosen.to)) });
  }

  const told = `Over time: ${countText(last?.rows ?? 0)} rows and ${bytesText(last?.bytes ?? 0)} now, after ${countText(points.length)} versions.`;
  return (
    <figure className="growth">
      <figcaption>
        <span className="growth-key" data-line="rows">
          Rows <strong className="number">{countText(last?.rows ?? 0)}</strong>
        </span>
        <span className="growth-key" data-line="bytes">
          Bytes <strong className="number">{bytesText(last?.bytes ?? 0)}</strong>
        </span>
        <span className="dim growth-hint">Drag over a time to see its versions</span>
      </figcaption>
      <div ref={ref} className="chart growth-chart">
        <svg
          role="img"
          aria-label={told}
          width="100%"
          height={HEIGHT}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            setBegun(place(event));
            setPointer(place(event));
          }}
          onPointerMove={(event) => setPointer(place(event))}
          onPointerUp={end}
          onPointerCancel={() => setBegun(null)}
          onPointerLeave={() => setPointer(null)}
        >
          {[0, 1, 2].map((step) => (
            <g key={step}>
              <line
                x1={PAD.left}
                x2={right}
                y1={y(step, 2)}
                y2={y(step, 2)}
                className={step === 0 ? "growth-axis" : "growth-grid"}
              />
              <text x={PAD.left - 6} y={y(step, 2)} dy="0.32em" textAnchor="end">
                {shortCount((rows.max * step) / 2)}
              </text>
            </g>
          ))}
          {byteTicks.map((value) => (
            <text key={value} x={right + 6} y={y(value, bytes.max)} dy="0.32em">
              {bytesText(value)}
            </text>
          ))}
          {points.length > 0 &&
            timeTicks(first, first + span, Math.floor((right - PAD.left) / TICK_WIDTH)).map((tick) => (
              <text key={tick.at} x={x(tick.at)} y={HEIGHT - 6} textAnchor={tick.anchor}>
                {tick.label}
              </text>
            ))}
          {chosen && (
            <rect
              x={chosen.from}
              width={Math.max(1, chosen.to - chosen.from)}
              y={PAD.top}
              height={bottom - PAD.top}
              className="growth-period"
            />
          )}
          {points.length > 0 && (
            <>
              <path d={`${rowsLine}V${bottom}H${x(first)}Z`} className="growth-area" />
              <path d={rowsLine} className="growth-rows" />
              <path d={line((point) => point.bytes, bytes.max)} className="growth-bytes" />
            </>
          )}
          {points.length <= DOTS_MAX &&
            points.map((point) => (
              <circle key={point.version} cx={x(point.at)} cy={y(point.rows, rows.max)} r={2.5} />
            ))}
          {shown && (
            <line x1={x(shown.at)} x2={x(shown.at)} y1={PAD.top} y2={bottom} className="growth-axis" />
          )}
        </svg>
        {shown && (
          <div
            className="growth-tip"
            style={{ left: Math.max(0, Math.min(x(shown.at) + 10, width - TIP_WIDTH)), width: TIP_WIDTH }}
          >
            Version {shown.version}, {exactText(new Date(shown.at).toISOString())}
            <br />
            Rows: {countText(shown.rows)}
            <br />
            Bytes: {bytesText(shown.bytes)}
          </div>
        )}
      </div>
    </figure>
  );
}

function shortCount(value: number): string {
  return new Intl.NumberFormat("en-US", { notation: "compact" }).format(value);
}
