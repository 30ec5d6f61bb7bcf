/** The plot of a chart, by uPlot. */

import uPlot from "uplot";

import { clockTime } from "../format";
import type { Series } from "../series";
import { colour } from "../theme";
import type { Line } from "./chart";

export const CHART_HEIGHT_PX = 172;
/** A chart shows at least this time, so that a first point is not stretched. */
const SECONDS_MIN = 60;
const Y_STEPS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10].flatMap((size) =>
  [1, 2, 5].map((step) => step * size),
);
/** The charts of a page have their pointers at the same time. */
const POINTERS = "charts";

export function makePlot(
  element: HTMLElement,
  lines: Line[],
  series: Series,
  format: (value: number | null) => string,
  point: (index: number | null) => void,
): uPlot {
  const axis: uPlot.Axis = {
    stroke: colour("text-quiet"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: colour("border"), width: 1 },
    ticks: { show: false },
  };
  const options: uPlot.Options = {
    width: element.clientWidth,
    height: CHART_HEIGHT_PX,
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false },
      sync: { key: POINTERS, setSeries: false },
      points: { size: 8 },
    },
    hooks: { setCursor: [(plot) => point(plot.cursor.idx ?? null)] },
    padding: [8, 28, 0, 0],
    scales: {
      x: { range: (plot) => timeRange(plot.data[0] as number[]) },
      y: { range: (_, __, max) => [0, Math.max((max ?? 0) * 1.1, 5)] },
    },
    axes: [
      { ...axis, grid: { show: false }, space: 90, size: 24, gap: 6, values: (_, ticks) => ticks.map(clockTime) },
      { ...axis, size: 64, space: 40, incrs: Y_STEPS, values: (_, ticks) => ticks.map((tick) => format(tick)) },
    ],
    series: [{}, ...lines.map(plottedLine)],
  };
  return new uPlot(options, dataOf(lines, series), element);
}

export function dataOf(lines: Line[], series: Series): uPlot.AlignedData {
  return [series.times, ...lines.map((line) => series.values[line.name] ?? series.times.map(() => null))];
}

function plottedLine(line: Line): uPlot.Series {
  return {
    label: line.label,
    stroke: colour(line.colour),
    width: 2,
    // One value alone has no line.
    points: { show: (plot) => (plot.data[0]?.length ?? 0) < 2, size: 6, fill: colour(line.colour) },
    ...(line.dash === undefined ? {} : { dash: line.dash }),
  };
}

/** The scale of the times; uPlot itself would spread one value over years. */
function timeRange(times: number[]): [number, number] {
  const end = times.at(-1) ?? Date.now() / 1000;
  return [Math.min(times[0] ?? end, end - SECONDS_MIN), end];
}
