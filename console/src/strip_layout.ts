/** The arithmetic of the strip of offsets. Pure. */

import type { RecordRange } from "./api";
import { shownState, type ShownState } from "./states";

/** Offsets from `first` to `last`, both inclusive, which the strip shows. */
export interface Window {
  first: number;
  last: number;
}

export interface Box {
  x: number;
  width: number;
  state: ShownState;
  /** The rest of the lock, from 0 to 1; null without a lock. */
  lockShare: number | null;
}

/** The fewest offsets that the strip shows. */
export const OFFSETS_MIN = 8;

export function size(window: Window): number {
  return window.last - window.first + 1;
}

/** The boxes of the ranges inside the window, in pixels. A narrow box has at least one pixel. */
export function boxesOf(
  ranges: readonly RecordRange[],
  window: Window,
  widthPx: number,
  lockDurationMs: number,
): Box[] {
  const scale = widthPx / size(window);
  const boxes: Box[] = [];
  for (const range of ranges) {
    const first = Math.max(range.first_offset, window.first);
    const last = Math.min(range.last_offset, window.last);
    if (first > last) continue;
    boxes.push({
      x: (first - window.first) * scale,
      width: Math.max((last - first + 1) * scale, 1),
      state: shownState(range),
      lockShare: range.holder === null ? null : lockShare(range.holder.lock_remaining_ms, lockDurationMs),
    });
  }
  return boxes;
}

/** The rest of a lock, from 0 to 1. A member may ask for longer locks than its group has. */
export function lockShare(remainingMs: number, durationMs: number): number {
  return durationMs <= 0 ? 0 : Math.min(Math.max(remainingMs / durationMs, 0), 1);
}

/** The offset at a distance from the left end, as a part of the width. */
export function offsetAt(place: number, window: Window): number {
  const share = Math.min(Math.max(place, 0), 1);
  return Math.min(window.first + Math.floor(share * size(window)), window.last);
}

/** The distance of an offset's middle from the left end, as a part of the width, inside of it. */
export function middleOf(offset: number, window: Window): number {
  return Math.min(Math.max((offset - window.first + 0.5) / size(window), 0), 1);
}

/** The window after a zoom around an offset, inside the bounds. A factor below 1 shows fewer offsets. */
export function zoomed(window: Window, around: number, factor: number, bounds: Window): Window {
  const count = Math.min(Math.max(Math.round(size(window) * factor), OFFSETS_MIN), Math.max(size(bounds), OFFSETS_MIN));
  const share = (around - window.first) / size(window);
  return inside(Math.round(around - share * count), count, bounds);
}

/** The window from one offset to another, which has at least `OFFSETS_MIN` offsets. */
export function spanned(one: number, other: number, bounds: Window): Window {
  const count = Math.max(Math.abs(other - one) + 1, OFFSETS_MIN);
  return inside(Math.min(one, other), count, bounds);
}

/** The window around the offset, moved only as far as necessary. */
export function showing(window: Window, offset: number, bounds: Window): Window {
  if (offset < window.first) return inside(offset, size(window), bounds);
  if (offset > window.last) return inside(offset - size(window) + 1, size(window), bounds);
  return window;
}

/** The window as the bounds have moved on: it moves with them and keeps its size. Null: it shows all. */
export function kept(window: Window | null, bounds: Window): Window | null {
  if (window === null || size(window) >= size(bounds)) return null;
  return inside(window.first, size(window), bounds);
}

function inside(first: number, count: number, bounds: Window): Window {
  const begin = Math.max(Math.min(first, bounds.last - count + 1), bounds.first);
  return { first: begin, last: begin + count - 1 };
}

/** The range with the offset; null between ranges. Ranges are ascending. */
export function rangeAt(ranges: readonly RecordRange[], offset: number): RecordRange | null {
  let low = 0;
  let high = ranges.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const range = ranges[middle] as RecordRange;
    if (offset < range.first_offset) high = middle - 1;
    else if (offset > range.last_offset) low = middle + 1;
    else return range;
  }
  return null;
}
