/** Measured values over time, and rates between them. Pure. */

/** Times in seconds, ascending, and for each name the values at these times; null is a gap. */
export interface Series {
  times: number[];
  values: Record<string, (number | null)[]>;
}

/** The most points of a chart; older ones are dropped. */
export const POINTS_MAX = 300;

export const EMPTY: Series = { times: [], values: {} };

export function extended(series: Series, time: number, sample: Record<string, number | null>): Series {
  const skip = Math.max(0, series.times.length + 1 - POINTS_MAX);
  const values: Series["values"] = {};
  for (const [name, value] of Object.entries(sample)) {
    const before = series.values[name] ?? series.times.map(() => null);
    values[name] = [...before.slice(skip), value];
  }
  return { times: [...series.times.slice(skip), time], values };
}

/** Totals that only grow, at one time in seconds. */
export interface Totals {
  time: number;
  totals: Record<string, number>;
}

/** The growth per second; null where a total is unknown or began anew. */
export function rates(before: Totals | null, now: Totals): Record<string, number | null> {
  const found: Record<string, number | null> = {};
  for (const [name, total] of Object.entries(now.totals)) {
    const last = before?.totals[name];
    const isKnown = before !== null && last !== undefined && total >= last && now.time > before.time;
    found[name] = isKnown ? (total - last) / (now.time - before.time) : null;
  }
  return found;
}
