/** The in-flight records of a share-partition as a strip of offsets, coloured by state.
 *
 * It is a slider for the keyboard and for screen readers: its value is the chosen offset. The table of ranges on
 * the same page is the alternative in text.
 */

import { useEffect, useRef, useState } from "preact/hooks";

import type { RecordRange } from "../api";
import { count } from "../format";
import { shownState } from "../states";
import { middleOf, rangeAt, type Window } from "../strip_layout";
import { usePainting } from "./strip_painting";
import { usePointer } from "./strip_pointer";
import { StripTip } from "./strip_tip";
import { Overview, useZoom, ZoomButtons, type Zoom } from "./strip_zoom";

const PAGE_OFFSETS = 10;

interface StripProps {
  ranges: readonly RecordRange[];
  /** All offsets that can be shown. */
  bounds: Window;
  lockDurationMs: number;
  chosen: number | null;
  choose: (offset: number) => void;
  /** Enter opens the history of the chosen offset. */
  open: (offset: number) => void;
}

export function Strip({ ranges, bounds, lockDurationMs, chosen, choose, open }: StripProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const zoom = useZoom(bounds);
  const pointer = usePointer(canvas, zoom, bounds, choose);
  const present = Math.min(Math.max(chosen ?? bounds.first, bounds.first), bounds.last);
  const keys = useKeys(canvas, present, bounds, zoom, choose, open);
  const { window } = zoom;
  const marked = keys.isUsed ? present : chosen;
  usePainting(canvas, { ranges, window, lockDurationMs, chosen: marked, drag: pointer.drag });
  const tipped = useDismissal(pointer.offset ?? (keys.isUsed ? present : null));

  return (
    <div class="strip">
      <div class="strip-box">
        <canvas
          ref={canvas}
          role="slider"
          tabIndex={0}
          aria-label="Offsets in flight"
          aria-valuemin={bounds.first}
          aria-valuemax={bounds.last}
          aria-valuenow={present}
          aria-valuetext={describe(ranges, present)}
          aria-describedby="strip-help"
          {...keys.handlers}
          {...pointer.handlers}
        />
        {tipped !== null && (
          <StripTip
            offset={tipped}
            range={rangeAt(ranges, tipped)}
            place={middleOf(tipped, window)}
            lockDurationMs={lockDurationMs}
          />
        )}
      </div>
      <Overview window={window} bounds={bounds} />
      <div class="strip-ends">
        <span>{count(window.first)}</span>
        <ZoomButtons zoom={zoom} around={present} />
        <span>{count(window.last)}</span>
      </div>
      <p class="quiet strip-help" id="strip-help">
        <span class="for-pointers">Click to choose an offset, drag to zoom.</span> Keys: arrows, Page Up, Page Down, Home
        and End choose, + and − zoom, 0 shows all, Enter opens the history.
      </p>
    </div>
  );
}

/** The words for screen readers. The rest of a lock is left out: it would be spoken again and again. */
export function describe(ranges: readonly RecordRange[], offset: number): string {
  const range = rangeAt(ranges, offset);
  if (range === null) return `Offset ${offset}: no record`;
  const deliveries = range.delivery_count === null ? "" : `, delivery count ${range.delivery_count}`;
  const holder = range.holder === null ? "" : `, held by ${range.holder.member_id}`;
  return `Offset ${offset}: ${shownState(range)}${deliveries}${holder}`;
}

/** The offset of the tip; null after Escape, until the offset is another one. */
function useDismissal(offset: number | null): number | null {
  const [dismissed, setDismissed] = useState<number | null>(null);
  useEffect(() => {
    setDismissed(null);
    const press = (event: KeyboardEvent) => {
      if (event.key === "Escape") setDismissed(offset);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [offset]);
  return offset === dismissed ? null : offset;
}

function useKeys(
  canvas: { current: HTMLCanvasElement | null },
  present: number,
  bounds: Window,
  zoom: Zoom,
  choose: (offset: number) => void,
  open: (offset: number) => void,
) {
  const [isUsed, setIsUsed] = useState(false);
  const moveTo = (offset: number) => {
    const next = Math.min(Math.max(offset, bounds.first), bounds.last);
    choose(next);
    zoom.show(next);
  };
  const actions: Record<string, () => void> = {
    ArrowLeft: () => moveTo(present - 1),
    ArrowDown: () => moveTo(present - 1),
    ArrowRight: () => moveTo(present + 1),
    ArrowUp: () => moveTo(present + 1),
    PageDown: () => moveTo(present - PAGE_OFFSETS),
    PageUp: () => moveTo(present + PAGE_OFFSETS),
    Home: () => moveTo(bounds.first),
    End: () => moveTo(bounds.last),
    "+": () => zoom.closer(present),
    "-": () => zoom.wider(present),
    "0": zoom.all,
    Enter: () => open(present),
  };
  const press = (event: KeyboardEvent) => {
    const action = actions[event.key];
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    setIsUsed(true);
    action();
  };
  return {
    /** Whether the keyboard, not the pointer, has brought the focus here. */
    isUsed,
    handlers: {
      onKeyDown: press,
      onFocus: () => setIsUsed(canvas.current?.matches(":focus-visible") ?? false),
      onBlur: () => setIsUsed(false),
    },
  };
}
