/** The in-flight records of a share-partition as a strip of offsets, coloured by state.
 *
 * It is a slider for the keyboard and for screen readers: its value is the chosen offset. The canvas is painted
 * at most once a frame. The table of ranges on the same page is the alternative in text.
 */

import { useEffect, useRef, useState } from "preact/hooks";

import type { RecordRange } from "../api";
import { count } from "../format";
import { LETTERS, shownState, type ShownState } from "../states";
import { boxesOf, OFFSETS_MIN, rangeAt, showing, size, zoomed, type Box, type Window } from "../strip_layout";
import { colour, onThemeChange } from "../theme";

const HEIGHT_PX = 64;
const LETTER_WIDTH_PX = 16;
const ZOOM = 2;
const PAGE_OFFSETS = 10;

interface StripProps {
  ranges: readonly RecordRange[];
  /** All offsets that can be shown. */
  bounds: Window;
  chosen: number | null;
  choose: (offset: number) => void;
}

export function Strip({ ranges, bounds, chosen, choose }: StripProps) {
  const [zoom, setZoom] = useState<Window | null>(null);
  const window = clipped(zoom, bounds) ?? bounds;
  const canvas = useRef<HTMLCanvasElement>(null);
  useDrawing(canvas, ranges, window, chosen);
  const present = Math.min(Math.max(chosen ?? bounds.first, bounds.first), bounds.last);

  const zoomBy = (factor: number, around: number) => {
    const next = zoomed(window, around, factor, bounds);
    setZoom(size(next) >= size(bounds) ? null : next);
  };
  const moveTo = (offset: number) => {
    const next = Math.min(Math.max(offset, bounds.first), bounds.last);
    choose(next);
    if (zoom !== null) setZoom(showing(window, next, bounds));
  };
  const press = (event: KeyboardEvent) => {
    const action = keyAction(event.key, present, bounds, moveTo, (factor) => zoomBy(factor, present));
    if (action === null) return;
    event.preventDefault();
    action();
  };
  const offsetUnder = (event: MouseEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    return Math.min(window.first + Math.max(Math.floor(share * size(window)), 0), bounds.last);
  };

  return (
    <div class="strip">
      <canvas
        ref={canvas}
        role="slider"
        tabIndex={0}
        aria-label="Offsets in flight"
        aria-valuemin={bounds.first}
        aria-valuemax={bounds.last}
        aria-valuenow={present}
        aria-valuetext={describe(ranges, present)}
        title={chosen === null ? "Choose an offset" : describe(ranges, present)}
        onKeyDown={press}
        onPointerMove={(event) => choose(offsetUnder(event))}
        onClick={(event) => choose(offsetUnder(event))}
      />
      <div class="strip-ends">
        <span>{count(window.first)}</span>
        <span class="buttons">
          <button type="button" onClick={() => zoomBy(1 / ZOOM, present)} disabled={size(window) <= OFFSETS_MIN}>
            Zoom in
          </button>
          <button type="button" onClick={() => zoomBy(ZOOM, present)} disabled={zoom === null}>
            Zoom out
          </button>
        </span>
        <span>{count(window.last)}</span>
      </div>
    </div>
  );
}

export function describe(ranges: readonly RecordRange[], offset: number): string {
  const range = rangeAt(ranges, offset);
  if (range === null) return `Offset ${offset}: no record`;
  const deliveries = range.delivery_count === null ? "" : `, delivery count ${range.delivery_count}`;
  const holder = range.holder === null ? "" : `, held by ${range.holder.member_id}`;
  return `Offset ${offset}: ${shownState(range)}${deliveries}${holder}`;
}

function keyAction(
  key: string,
  present: number,
  bounds: Window,
  moveTo: (offset: number) => void,
  zoomBy: (factor: number) => void,
): (() => void) | null {
  const actions: Record<string, () => void> = {
    ArrowLeft: () => moveTo(present - 1),
    ArrowDown: () => moveTo(present - 1),
    ArrowRight: () => moveTo(present + 1),
    ArrowUp: () => moveTo(present + 1),
    PageDown: () => moveTo(present - PAGE_OFFSETS),
    PageUp: () => moveTo(present + PAGE_OFFSETS),
    Home: () => moveTo(bounds.first),
    End: () => moveTo(bounds.last),
    "+": () => zoomBy(1 / ZOOM),
    "-": () => zoomBy(ZOOM),
  };
  return actions[key] ?? null;
}

/** The part of a zoom that still exists: the start offset moves on. Null: nothing of it is left. */
function clipped(zoom: Window | null, bounds: Window): Window | null {
  if (zoom === null || zoom.last < bounds.first || zoom.first > bounds.last) return null;
  return { first: Math.max(zoom.first, bounds.first), last: zoom.last };
}

function useDrawing(
  canvas: { current: HTMLCanvasElement | null },
  ranges: readonly RecordRange[],
  window: Window,
  chosen: number | null,
): void {
  const draw = useRef(() => {});
  draw.current = () => {
    if (canvas.current !== null) paint(canvas.current, ranges, window, chosen);
  };
  const frame = useRef(0);
  const drawSoon = () => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => draw.current());
  };
  useEffect(drawSoon, [ranges, window.first, window.last, chosen]);
  useEffect(() => {
    const resizing = new ResizeObserver(drawSoon);
    if (canvas.current !== null) resizing.observe(canvas.current);
    const end = onThemeChange(drawSoon);
    return () => {
      end();
      resizing.disconnect();
      cancelAnimationFrame(frame.current);
    };
  }, []);
}

function paint(
  canvas: HTMLCanvasElement,
  ranges: readonly RecordRange[],
  window: Window,
  chosen: number | null,
): void {
  const pen = canvas.getContext("2d");
  if (pen === null) return;
  const density = devicePixelRatio;
  const width = canvas.clientWidth;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(HEIGHT_PX * density);
  pen.scale(density, density);
  pen.clearRect(0, 0, width, HEIGHT_PX);
  const paints = new Map<ShownState, Paint>();
  for (const box of boxesOf(ranges, window, width)) paintBox(pen, box, paints);
  if (chosen !== null && chosen >= window.first && chosen <= window.last) {
    const scale = width / size(window);
    pen.strokeStyle = colour("text");
    pen.lineWidth = 2;
    const x = (chosen - window.first) * scale;
    pen.strokeRect(Math.min(x + 1, width - 3), 1, Math.max(scale - 2, 2), HEIGHT_PX - 2);
  }
}

interface Paint {
  fill: string;
  letter: string;
}

function paintBox(pen: CanvasRenderingContext2D, box: Box, paints: Map<ShownState, Paint>): void {
  let found = paints.get(box.state);
  if (found === undefined) {
    found = { fill: colour(`state-${box.state}`), letter: colour("state-letter") };
    paints.set(box.state, found);
  }
  const gap = box.width > 4 ? 1 : 0;
  pen.fillStyle = found.fill;
  pen.fillRect(box.x, 0, box.width - gap, HEIGHT_PX);
  if (box.width < LETTER_WIDTH_PX) return;
  pen.fillStyle = found.letter;
  pen.font = "600 13px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(LETTERS[box.state], box.x + box.width / 2, HEIGHT_PX / 2);
}
