/** The pointer on the strip: it points at an offset, chooses one with a click, and zooms with a drag, with a double
 * click, or with the wheel and Ctrl, as a pinch does. */

import { useEffect, useRef, useState } from "preact/hooks";

import { offsetAt, spanned, type Window } from "../strip_layout";
import type { Zoom } from "./strip_zoom";

const WHEEL_ZOOM = 1.25;
/** A shorter way of the pointer is a click. */
const DRAG_PX_MIN = 6;

interface Drag {
  fromPx: number;
  from: number;
  to: number;
  /** Whether the way is long enough. */
  isZoom: boolean;
}

export interface Pointer {
  /** The offset under the pointer; null without one. */
  offset: number | null;
  /** The offsets over which the pointer was dragged so far. */
  drag: Window | null;
  handlers: {
    onPointerDown: (event: PointerEvent) => void;
    onPointerMove: (event: PointerEvent) => void;
    onPointerUp: (event: PointerEvent) => void;
    onPointerLeave: () => void;
    onPointerCancel: () => void;
    onDblClick: (event: MouseEvent) => void;
  };
}

export function usePointer(
  canvas: { current: HTMLCanvasElement | null },
  zoom: Zoom,
  bounds: Window,
  choose: (offset: number) => void,
): Pointer {
  // The place, not the offset: the offsets move below a pointer that rests.
  const [place, setPlace] = useState<number | null>(null);
  const [drag, setDrag] = useState<Drag | null>(null);
  const placeOf = (event: MouseEvent) => {
    const box = canvas.current?.getBoundingClientRect();
    return box === undefined ? 0 : (event.clientX - box.left) / box.width;
  };
  const offsetUnder = (event: MouseEvent) => offsetAt(placeOf(event), zoom.window);
  useWheel(canvas, (event) => zoom.by(event.deltaY < 0 ? 1 / WHEEL_ZOOM : WHEEL_ZOOM, offsetUnder(event)));
  const grab = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const offset = offsetUnder(event);
    if (event.pointerType === "mouse") canvas.current?.setPointerCapture(event.pointerId);
    setDrag({ fromPx: event.clientX, from: offset, to: offset, isZoom: false });
  };
  const move = (event: PointerEvent) => {
    setPlace(placeOf(event));
    if (drag === null) return;
    setDrag({ ...drag, to: offsetUnder(event), isZoom: drag.isZoom || Math.abs(event.clientX - drag.fromPx) >= DRAG_PX_MIN });
  };
  const release = (event: PointerEvent) => {
    if (drag?.isZoom) zoom.to(spanned(drag.from, offsetUnder(event), bounds));
    else if (drag !== null) choose(offsetUnder(event));
    setDrag(null);
  };
  const leave = () => {
    setPlace(null);
    setDrag(null);
  };
  return {
    offset: place === null ? null : offsetAt(place, zoom.window),
    drag: drag?.isZoom ? { first: Math.min(drag.from, drag.to), last: Math.max(drag.from, drag.to) } : null,
    handlers: {
      onPointerDown: grab,
      onPointerMove: move,
      onPointerUp: release,
      onPointerLeave: leave,
      onPointerCancel: leave,
      onDblClick: (event) => zoom.closer(offsetUnder(event)),
    },
  };
}

/** Calls back for the wheel with Ctrl, which then does not zoom the page. */
function useWheel(canvas: { current: HTMLCanvasElement | null }, turned: (event: WheelEvent) => void): void {
  const newest = useRef(turned);
  newest.current = turned;
  useEffect(() => {
    const element = canvas.current;
    const turn = (event: WheelEvent) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      newest.current(event);
    };
    element?.addEventListener("wheel", turn, { passive: false });
    return () => element?.removeEventListener("wheel", turn);
  }, []);
}
