/** Numbers and times for readers. Pure. */

const numbers = new Intl.NumberFormat("en");
const smallNumbers = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** The furthest time from 1970 of a `Date`, in both directions. */
const DATE_MS_MAX = 8.64e15;

/** A count or an offset; a dash if it is unknown. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined || value < 0 ? "–" : numbers.format(value);
}

/** A rate in units per second. */
export function rate(value: number | null): string {
  return value === null ? "–" : `${value < 10 ? smallNumbers.format(value) : numbers.format(Math.round(value))}/s`;
}

/** "1 record", "2 records". */
export function counted(value: number, noun: string, plural = `${noun}s`): string {
  return `${numbers.format(value)} ${value === 1 ? noun : plural}`;
}

export function offsets(first: number, last: number): string {
  return first === last ? numbers.format(first) : `${numbers.format(first)}–${numbers.format(last)}`;
}

export function seconds(durationMs: number): string {
  return durationMs < 10 * SECOND_MS
    ? `${(durationMs / SECOND_MS).toFixed(1)} s`
    : `${numbers.format(Math.round(durationMs / SECOND_MS))} s`;
}

/** A duration in its largest unit: "12 s", "3 min", "5 h", "2 d"; a dash if it is unknown. */
export function duration(durationMs: number | null): string {
  if (durationMs === null) return "–";
  if (durationMs < MINUTE_MS) return `${Math.floor(durationMs / SECOND_MS)} s`;
  if (durationMs < HOUR_MS) return `${Math.floor(durationMs / MINUTE_MS)} min`;
  if (durationMs < DAY_MS) return `${Math.floor(durationMs / HOUR_MS)} h`;
  return `${numbers.format(Math.floor(durationMs / DAY_MS))} d`;
}

/** The duration since a time, which a producer may set to the future. */
export function age(timestampMs: number | null, nowMs: number): string {
  return duration(timestampMs === null ? null : Math.max(nowMs - timestampMs, 0));
}

/** "3 minutes ago". */
export function ago(timestampMs: number, nowMs: number): string {
  const distanceMs = timestampMs - nowMs;
  const size = Math.abs(distanceMs);
  if (size < MINUTE_MS) return relative.format(Math.round(distanceMs / SECOND_MS), "second");
  if (size < HOUR_MS) return relative.format(Math.round(distanceMs / MINUTE_MS), "minute");
  if (size < DAY_MS) return relative.format(Math.round(distanceMs / HOUR_MS), "hour");
  return relative.format(Math.round(distanceMs / DAY_MS), "day");
}

/** The time in the form of ISO 8601; null for a time that `Date` cannot have, which a producer can send. */
export function isoTime(timestampMs: number): string | null {
  return Math.abs(timestampMs) <= DATE_MS_MAX ? new Date(timestampMs).toISOString() : null;
}

export function exactTime(timestampMs: number): string {
  return isoTime(timestampMs)?.replace("T", " ").replace("Z", " UTC") ?? `${timestampMs} ms`;
}

/** "14:05:30", in the reader's time zone. */
export function clockTime(timeSeconds: number): string {
  return new Date(timeSeconds * 1000).toLocaleTimeString("en-GB");
}
