// Rows and bytes over time; dragging over a period leaves its versions in the list.
import { LineChart } from "echarts/charts";
import {
  AriaComponent,
  BrushComponent,
  GridComponent,
  ToolboxComponent,
  TooltipComponent,
} from "echarts/components";
import { type EChartsType, init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { useEffect, useRef } from "react";
import { bytesText, countText, exactText } from "@/parts/formats";
import { bytesAxis, type ChartPoint, type Period } from "./growth";

use([
  LineChart,
  AriaComponent,
  BrushComponent,
  GridComponent,
  ToolboxComponent,
  TooltipComponent,
  SVGRenderer,
]);

interface GrowthChartProps {
  points: readonly ChartPoint[];
  period: Period | null;
  onPeriod: (period: Period) => void;
}

export default function GrowthChart({ points, period, onPeriod }: GrowthChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<EChartsType | null>(null);
  const chosen = useRef(onPeriod);
  chosen.current = onPeriod;

  useEffect(() => {
    if (!place.current) return;
    const made = init(place.current, null, { renderer: "svg" });
    chart.current = made;
    made.on("brushEnd", (event) => {
      const [area] = (event as { areas?: { coordRange?: [number, number] }[] }).areas ?? [];
      const range = area?.coordRange;
      if (range) chosen.current({ from: Math.floor(range[0]), to: Math.ceil(range[1]) });
    });
    const resized = new ResizeObserver(() => made.resize());
    resized.observe(place.current);
    return () => {
      resized.disconnect();
      made.dispose();
    };
  }, []);

  useEffect(() => {
    const draw = () => chart.current?.setOption(optionsOf(points, getComputedStyle(document.body)));
    draw();
    chart.current?.dispatchAction({
      type: "takeGlobalCursor",
      key: "brush",
      brushOption: { brushType: "lineX", brushMode: "single" },
    });
    // Its colours are the page's, and change with them.
    const watcher = new MutationObserver(draw);
    watcher.observe(document.documentElement, { attributeFilter: ["data-mantine-color-scheme"] });
    return () => watcher.disconnect();
  }, [points]);

  useEffect(() => {
    const areas = period ? [{ brushType: "lineX", coordRange: [period.from, period.to], xAxisIndex: 0 }] : [];
    chart.current?.dispatchAction({ type: "brush", areas });
  }, [period]);

  const last = points.at(-1);
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
      <div ref={place} className="chart" role="img" aria-label={told} />
    </figure>
  );
}

function optionsOf(points: readonly ChartPoint[], style: CSSStyleDeclaration) {
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const text = { color: colour("--mantine-color-dimmed"), fontSize: 11 };
  const line = { lineStyle: { color: colour("--console-line") } };
  const shared = { type: "line", step: "end", symbol: points.length > 40 ? "none" : "circle", symbolSize: 5 };
  return {
    animation: false,
    grid: { left: 52, right: 60, top: 8, bottom: 22 },
    tooltip: { trigger: "axis", formatter: tip, confine: true, textStyle: { fontSize: 12 } },
    toolbox: { show: false },
    brush: {
      xAxisIndex: 0,
      toolbox: [],
      brushType: "lineX",
      throttleType: "debounce",
      transformable: false,
      outOfBrush: { colorAlpha: 0.35 },
    },
    xAxis: {
      type: "time",
      axisLabel: { ...text, hideOverlap: true },
      axisLine: line,
      splitLine: { show: false },
    },
    yAxis: [
      { type: "value", axisLabel: { ...text, formatter: shortCount }, splitLine: line, splitNumber: 2 },
      {
        type: "value",
        axisLabel: { ...text, formatter: bytesText },
        splitLine: { show: false },
        // Round numbers of bytes are powers of two, which an axis does not choose by itself.
        ...bytesAxis(Math.max(1, ...points.map((point) => point.bytes))),
      },
    ],
    series: [
      {
        ...shared,
        name: "Rows",
        color: colour("--console-changed"),
        areaStyle: { opacity: 0.1 },
        data: points.map((point) => [point.at, point.rows, point.version]),
      },
      {
        ...shared,
        name: "Bytes",
        yAxisIndex: 1,
        color: colour("--mantine-color-dimmed"),
        lineStyle: { type: "dashed", width: 1.5 },
        data: points.map((point) => [point.at, point.bytes, point.version]),
      },
    ],
  };
}

function shortCount(value: number): string {
  return new Intl.NumberFormat("en-US", { notation: "compact" }).format(value);
}

function tip(given: unknown): string {
  const series = given as { seriesName: string; value: [number, number, number] }[];
  const [first] = series;
  if (!first) return "";
  const lines = series.map((one) => {
    const value = one.seriesName === "Bytes" ? bytesText(one.value[1]) : countText(one.value[1]);
    return `${one.seriesName}: ${value}`;
  });
  return [`Version ${first.value[2]}, ${exactText(new Date(first.value[0]).toISOString())}`, ...lines].join(
    "<br>",
  );
}
