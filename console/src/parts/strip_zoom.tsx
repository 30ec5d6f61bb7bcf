/** The part of the offsets that the strip shows: its state, its buttons, and its place among all offsets. */

import { useState } from "preact/hooks";

import { counted } from "../format";
import { kept, OFFSETS_MIN, showing, size, zoomed, type Window } from "../strip_layout";

/** One step shows half of the offsets, or twice as many. */
const STEP = 2;

export interface Zoom {
  window: Window;
  isAll: boolean;
  by: (factor: number, around: number) => void;
  closer: (around: number) => void;
  wider: (around: number) => void;
  to: (window: Window) => void;
  /** Moves the window as far as necessary to show the offset. */
  show: (offset: number) => void;
  all: () => void;
}

export function useZoom(bounds: Window): Zoom {
  const [chosen, setChosen] = useState<Window | null>(null);
  const zoom = kept(chosen, bounds);
  const window = zoom ?? bounds;
  const by = (factor: number, around: number) => setChosen(zoomed(window, around, factor, bounds));
  return {
    window,
    isAll: zoom === null,
    by,
    closer: (around) => by(1 / STEP, around),
    wider: (around) => by(STEP, around),
    to: setChosen,
    show: (offset) => setChosen(zoom === null ? null : showing(zoom, offset, bounds)),
    all: () => setChosen(null),
  };
}

/** The buttons zoom around the offset. */
export function ZoomButtons({ zoom, around }: { zoom: Zoom; around: number }) {
  return (
    <span class="buttons">
      <button type="button" onClick={() => zoom.closer(around)} disabled={size(zoom.window) <= OFFSETS_MIN}>
        Zoom in
      </button>
      <button type="button" onClick={() => zoom.wider(around)} disabled={zoom.isAll}>
        Zoom out
      </button>
      <button type="button" onClick={zoom.all} disabled={zoom.isAll}>
        Show all
      </button>
    </span>
  );
}

/** The place of the window in the bounds, for the eye. */
export function Overview({ window, bounds }: { window: Window; bounds: Window }) {
  const total = Math.max(size(bounds), 1);
  const left = `${((window.first - bounds.first) / total) * 100}%`;
  const width = `${Math.min(size(window) / total, 1) * 100}%`;
  return (
    <div class="overview" title={counted(size(window), "offset")} aria-hidden="true">
      <span style={{ left, width }} />
    </div>
  );
}
