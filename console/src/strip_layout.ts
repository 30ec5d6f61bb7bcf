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
}

/** The fewest offsets that the strip shows. */
export const OFFSETS_MIN = 8;

export function size(window: Window): number {
  return window.last - window.first + 1;
}

/** The boxes of the ranges inside the window, in pixels. A narrow box has at least one pixel. */
export function boxesOf(ranges: readonly RecordRange[], window: Window, widthPx: number): Box[] {
  const scale = widthPx / size(window);
  const boxes: Box[] = [];
  for (const range of ranges) {
    const first = Math.max(range.first_offset, window.first);
    const last = Math.min(range.last_offset, window.last);
    if (first > last) continue;
    const x = (first - window.first) * scale;
    boxes.push({ x, width: Math.max((last - first + 1) * scale, 1), state: shownState(range) });
  }
  return boxes;
}

/** The window after a zoom around an offset, inside the bounds. A factor below 1 shows fewer offsets. */
export function zoomed(window: Window, around: number, factor: number, bounds: Window): Window {
  const count = Math.min(Math.max(Math.round(size(window) * factor), OFFSETS_MIN), Math.max(size(bounds), OFFSETS_MIN));
  const share = (around - window.first) / size(window);
  return inside({ first: Math.round(around - share * count), last: 0 }, count, bounds);
}

/** The window around the offset, moved only as far as necessary. */
export function showing(window: Window, offset: number, bounds: Window): Window {
  if (offset < window.first) return inside({ first: offset, last: 0 }, size(window), bounds);
  if (offset > window.last) return inside({ first: offset - size(window) + 1, last: 0 }, size(window), bounds);
  return window;
}

function inside(window: Window, count: number, bounds: Window): Window {
  const first = Math.max(Math.min(window.first, bounds.last - count + 1), bounds.first);
  return { first, last: first + count - 1 };
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
