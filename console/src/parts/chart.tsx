/** A chart of lines over time. A table of the last values says the same to screen readers. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

import type { Series } from "../series";
import { colour, onThemeChange } from "../theme";

export interface Line {
  name: string;
  label: string;
  /** The custom property with its colour. */
  colour: string;
  /** A dashed line differs without its colour. */
  dash?: number[];
}

const HEIGHT_PX = 180;
/** A chart shows at least this time, so that a first point is not stretched. */
const SECONDS_MIN = 60;
const STEPS = [1, 2, 5];
const Y_STEPS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10].flatMap((size) =>
  STEPS.map((step) => step * size),
);

export function Chart({ title, lines, series, format }: {
  title: string;
  lines: Line[];
  series: Series;
  format: (value: number | null) => string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const newest = useRef(series);
  newest.current = series;
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(optionsOf(lines, element.clientWidth, format), dataOf(lines, newest.current), element);
    };
    draw();
    const resizing = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height: HEIGHT_PX });
    });
    resizing.observe(element);
    const end = onThemeChange(draw);
    return () => {
      end();
      resizing.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(() => plot.current?.setData(dataOf(lines, series)), [series]);
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <dl>
          {lines.map((line) => (
            <div key={line.name}>
              <dt>
                <LineSample line={line} />
                {line.label}
              </dt>
              <dd>{format(series.values[line.name]?.at(-1) ?? null)}</dd>
            </div>
          ))}
        </dl>
      </figcaption>
      <div ref={box} aria-hidden="true" />
    </figure>
  );
}

function LineSample({ line }: { line: Line }) {
  return (
    <svg width="22" height="8" aria-hidden="true">
      <line
        x1="0"
        x2="22"
        y1="4"
        y2="4"
        stroke={`var(--${line.colour})`}
        stroke-width="2.5"
        stroke-dasharray={(line.dash ?? []).join(" ")}
      />
    </svg>
  );
}

function dataOf(lines: Line[], series: Series): uPlot.AlignedData {
  return [series.times, ...lines.map((line) => series.values[line.name] ?? series.times.map(() => null))];
}

function optionsOf(lines: Line[], width: number, format: (value: number | null) => string): uPlot.Options {
  const axis: uPlot.Axis = {
    stroke: colour("text-quiet"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: colour("border"), width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 8, 0, 0],
    scales: {
      x: { range: (plot) => timeRange(plot.data[0] as number[]) },
      y: { range: (_, __, max) => [0, Math.max((max ?? 0) * 1.1, 5)] },
    },
    axes: [
      { ...axis, grid: { show: false }, space: 90, size: 32, values: (_, ticks) => ticks.map(clockTime) },
      { ...axis, size: 72, space: 40, incrs: Y_STEPS, values: (_, ticks) => ticks.map((tick) => format(tick)) },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.label,
        stroke: colour(line.colour),
        width: 2,
        points: { show: false },
        ...(line.dash === undefined ? {} : { dash: line.dash }),
      })),
    ],
  };
}

/** "14:05:30", in the reader's time zone. */
function clockTime(timeSeconds: number): string {
  return new Date(timeSeconds * 1000).toLocaleTimeString("en-GB");
}

/** The scale of the times; uPlot itself would spread one value over years. */
function timeRange(times: number[]): [number, number] {
  const end = times.at(-1) ?? Date.now() / 1000;
  return [Math.min(times[0] ?? end, end - SECONDS_MIN), end];
}
