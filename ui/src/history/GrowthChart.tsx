// Rows over time, and how many each version changed; dragging over a period leaves its versions in the list.
import { BarChart, LineChart } from "echarts/charts";
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
import { countText, exactText } from "@/parts/formats";
import type { GrowthPoint, Period } from "./growth";

use([
  BarChart,
  LineChart,
  AriaComponent,
  BrushComponent,
  GridComponent,
  ToolboxComponent,
  TooltipComponent,
  SVGRenderer,
]);

interface GrowthChartProps {
  points: readonly GrowthPoint[];
  period: Period | null;
  onPeriod: (period: Period | null) => void;
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
    const watcher = new ResizeObserver(() => made.resize());
    watcher.observe(place.current);
    return () => {
      watcher.disconnect();
      made.dispose();
    };
  }, []);

  useEffect(() => {
    chart.current?.setOption(optionsOf(points, getComputedStyle(document.body)));
    chart.current?.dispatchAction({
      type: "takeGlobalCursor",
      key: "brush",
      brushOption: { brushType: "lineX", brushMode: "single" },
    });
  }, [points]);

  useEffect(() => {
    if (period === null) chart.current?.dispatchAction({ type: "brush", areas: [] });
  }, [period]);

  const last = points.at(-1);
  const told = `Rows over time: ${countText(last?.rows ?? 0)} now, after ${countText(points.length)} versions.`;
  return <div ref={place} className="chart" role="img" aria-label={told} />;
}

function optionsOf(points: readonly GrowthPoint[], style: CSSStyleDeclaration) {
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const text = { color: colour("--mantine-color-dimmed"), fontSize: 11 };
  const line = { lineStyle: { color: colour("--console-line") } };
  return {
    animation: false,
    grid: { left: 56, right: 44, top: 14, bottom: 24 },
    tooltip: { trigger: "axis", formatter: tip, confine: true, textStyle: { fontSize: 12 } },
    toolbox: { show: false },
    brush: { xAxisIndex: 0, toolbox: [], brushType: "lineX", throttleType: "debounce", transformable: false },
    xAxis: {
      type: "time",
      axisLabel: { ...text, hideOverlap: true },
      axisLine: line,
      splitLine: { show: false },
    },
    yAxis: [
      {
        type: "value",
        axisLabel: text,
        splitLine: line,
        splitNumber: 3,
      },
      {
        type: "value",
        axisLabel: text,
        splitLine: { show: false },
        splitNumber: 3,
      },
    ],
    series: [
      {
        name: "Rows",
        type: "line",
        step: "end",
        symbol: points.length > 40 ? "none" : "circle",
        symbolSize: 5,
        color: colour("--console-changed"),
        areaStyle: { opacity: 0.12 },
        data: points.map((point) => [point.at, point.rows, point.version]),
      },
      {
        name: "Changed rows",
        type: "bar",
        yAxisIndex: 1,
        barMaxWidth: 6,
        color: colour("--console-new"),
        data: points.map((point) => [point.at, point.changed, point.version]),
      },
    ],
  };
}

function tip(given: unknown): string {
  const [first] = given as { value: [number, number, number] }[];
  if (!first) return "";
  const lines = (given as { seriesName: string; value: number[] }[]).map(
    (one) => `${one.seriesName}: ${countText(one.value[1] ?? 0)}`,
  );
  return [`Version ${first.value[2]}, ${exactText(new Date(first.value[0]).toISOString())}`, ...lines].join(
    "<br>",
  );
}
