/** The canvas of the strip: a lane of states, and below it a lane with the rest of each lock as a bar. */

import { useEffect, useRef } from "preact/hooks";

import type { RecordRange } from "../api";
import { LETTERS, type ShownState } from "../states";
import { boxesOf, size, type Box, type Window } from "../strip_layout";
import { colour, onThemeChange } from "../theme";

/** The style sheet has the sum as the canvas's height. */
const STATES_PX = 56;
const GAP_PX = 3;
const LOCKS_PX = 21;
const HEIGHT_PX = STATES_PX + GAP_PX + LOCKS_PX;

const LETTER_WIDTH_PX = 16;
/** A narrower box touches its neighbours, else it would vanish. */
const SPACED_WIDTH_PX = 4;

export interface Picture {
  ranges: readonly RecordRange[];
  window: Window;
  lockDurationMs: number;
  chosen: number | null;
  /** The offsets between which the pointer was dragged. */
  drag: Window | null;
}

/** Keeps the canvas as the picture says, painted at most once a frame. */
export function usePainting(canvas: { current: HTMLCanvasElement | null }, picture: Picture): void {
  const newest = useRef(picture);
  newest.current = picture;
  const frame = useRef(0);
  const paintSoon = () => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => {
      if (canvas.current !== null) paint(canvas.current, newest.current);
    });
  };
  const { ranges, window, chosen, drag, lockDurationMs } = picture;
  useEffect(paintSoon, [ranges, window.first, window.last, lockDurationMs, chosen, drag?.first, drag?.last]);
  useEffect(() => {
    const resizing = new ResizeObserver(paintSoon);
    if (canvas.current !== null) resizing.observe(canvas.current);
    const end = onThemeChange(paintSoon);
    return () => {
      end();
      resizing.disconnect();
      cancelAnimationFrame(frame.current);
    };
  }, []);
}

function paint(canvas: HTMLCanvasElement, picture: Picture): void {
  const pen = canvas.getContext("2d");
  if (pen === null) return;
  const width = canvas.clientWidth;
  canvas.width = Math.round(width * devicePixelRatio);
  canvas.height = Math.round(HEIGHT_PX * devicePixelRatio);
  pen.scale(devicePixelRatio, devicePixelRatio);
  pen.fillStyle = colour("track");
  pen.fillRect(0, 0, width, STATES_PX);
  pen.fillRect(0, STATES_PX + GAP_PX, width, LOCKS_PX);
  const fills = new Map<ShownState, string>();
  const letter = colour("state-letter");
  for (const box of boxesOf(picture.ranges, picture.window, width, picture.lockDurationMs)) {
    let fill = fills.get(box.state);
    if (fill === undefined) fills.set(box.state, (fill = colour(`state-${box.state}`)));
    paintBox(pen, box, fill, letter);
  }
  if (picture.drag !== null) paintDrag(pen, picture.drag, picture.window, width);
  if (picture.chosen !== null) paintChosen(pen, picture.chosen, picture.window, width);
}

function paintBox(pen: CanvasRenderingContext2D, box: Box, fill: string, letter: string): void {
  const width = box.width - (box.width > SPACED_WIDTH_PX ? 1 : 0);
  pen.fillStyle = fill;
  pen.fillRect(box.x, 0, width, STATES_PX);
  if (box.lockShare !== null) {
    const height = Math.max(box.lockShare * LOCKS_PX, 1);
    pen.fillRect(box.x, HEIGHT_PX - height, width, height);
  }
  if (box.width < LETTER_WIDTH_PX) return;
  pen.fillStyle = letter;
  pen.font = "600 13px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(LETTERS[box.state], box.x + width / 2, STATES_PX / 2);
}

function paintDrag(pen: CanvasRenderingContext2D, drag: Window, window: Window, width: number): void {
  const scale = width / size(window);
  pen.globalAlpha = 0.35;
  pen.fillStyle = colour("text");
  pen.fillRect((drag.first - window.first) * scale, 0, size(drag) * scale, HEIGHT_PX);
  pen.globalAlpha = 1;
}

/** An outline in two colours, which is visible on each state. */
function paintChosen(pen: CanvasRenderingContext2D, chosen: number, window: Window, width: number): void {
  if (chosen < window.first || chosen > window.last) return;
  const scale = width / size(window);
  const x = Math.min((chosen - window.first) * scale, width - 5);
  const boxWidth = Math.max(scale, 5);
  pen.lineWidth = 4;
  pen.strokeStyle = colour("surface");
  pen.strokeRect(x + 1, 2, boxWidth - 2, HEIGHT_PX - 4);
  pen.lineWidth = 2;
  pen.strokeStyle = colour("text");
  pen.strokeRect(x + 1, 1, boxWidth - 2, HEIGHT_PX - 2);
}
