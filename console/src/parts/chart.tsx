/** A chart of lines over time.
 *
 * The legend has the newest values, or those under the pointer. The canvas is hidden from screen readers: the
 * legend says the newest values, and a table below, which the reader can open, those before.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";

import { clockTime } from "../format";
import type { Series } from "../series";
import { onThemeChange } from "../theme";
import { CHART_HEIGHT_PX, dataOf, makePlot } from "./chart_plot";

export interface Line {
  name: string;
  label: string;
  /** The custom property with its colour. */
  colour: string;
  /** A dashed line differs without its colour. */
  dash?: number[];
}

type Format = (value: number | null) => string;

interface ChartProps {
  title: string;
  /** The unit of all values, in words. */
  unit: string;
  lines: Line[];
  series: Series;
  format: Format;
}

/** The newest values in the table. */
const TABLE_ROWS = 12;

export function Chart({ title, unit, lines, series, format }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  usePlot(box, lines, series, format, setPointed);
  const isPointed = pointed !== null && pointed < series.times.length;
  const shown = isPointed ? pointed : series.times.length - 1;
  const time = series.times[shown];
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="quiet">
          {unit}
          {isPointed && time !== undefined && <>, at {clockTime(time)}</>}
        </span>
      </figcaption>
      <dl>
        {lines.map((line) => (
          <div key={line.name}>
            <dt>
              <LineSample line={line} />
              {line.label}
            </dt>
            <dd>{format(series.values[line.name]?.[shown] ?? null)}</dd>
          </div>
        ))}
      </dl>
      <div class="chart-box" ref={box} aria-hidden="true" />
      <Values title={title} lines={lines} series={series} format={format} />
    </figure>
  );
}

/** Keeps a plot in the element. Calls back with the index of the values under the pointer; null without one. */
function usePlot(
  box: { current: HTMLDivElement | null },
  lines: Line[],
  series: Series,
  format: Format,
  point: (index: number | null) => void,
): void {
  const plot = useRef<uPlot | null>(null);
  const newest = useRef(series);
  newest.current = series;
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const draw = () => {
      plot.current?.destroy();
      plot.current = makePlot(element, lines, newest.current, format, point);
    };
    draw();
    const resizing = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height: CHART_HEIGHT_PX });
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

/** The newest values, newest first. */
function Values({ title, lines, series, format }: Omit<ChartProps, "unit">) {
  const [isOpen, setIsOpen] = useState(false);
  const end = series.times.length;
  const indexes = Array.from({ length: Math.min(end, TABLE_ROWS) }, (_, index) => end - 1 - index);
  return (
    <details onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        Values<span class="unseen"> of {title}</span>
      </summary>
      {isOpen && (
        <table class="values">
          <caption class="unseen">{title}: the last values, newest first</caption>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {lines.map((line) => (
                <th key={line.name} scope="col" class="number">
                  {line.label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {indexes.map((index) => (
              <tr key={series.times[index]}>
                <th scope="row">{clockTime(series.times[index] ?? 0)}</th>
                {lines.map((line) => (
                  <td key={line.name} class="number">
                    {format(series.values[line.name]?.[index] ?? null)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </details>
  );
}
