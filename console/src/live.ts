/** The state of a share-partition as the broker's stream of events has it, while the page is visible. */

import { useEffect, useState } from "preact/hooks";

import { get, liveUrl, recordsPath, type LiveState, type SharePartition } from "./api";
import { reasonOf } from "./polling";

/** The time between two events of a share-partition. */
export const LIVE_MS = 500;
/** The most ranges of one event. */
export const LIVE_RANGES = 500;
/** The time before a refused stream is asked for again. */
const RETRY_MS = 2000;

const LOST = "The connection to the broker is lost. The console tries again.";

export interface Live {
  state: LiveState | null;
  /** The reason why the state is missing or old; null if it is current. */
  failure: string | null;
}

/** Follows the stream of a share-partition. A pause keeps the last state. */
export function useLive(place: SharePartition, isPaused: boolean): Live {
  const [live, setLive] = useState<Live>({ state: null, failure: null });
  const isVisible = useVisibility();
  const url = liveUrl(place, LIVE_MS, LIVE_RANGES);
  useEffect(() => {
    if (isPaused || !isVisible) return undefined;
    return follow(
      place,
      (state) => setLive({ state, failure: null }),
      (failure) => setLive((last) => ({ ...last, failure })),
    );
  }, [url, isPaused, isVisible]);
  return live;
}

/** A hidden page follows nothing: the broker has a bounded number of streams. */
function useVisibility(): boolean {
  const [isVisible, setIsVisible] = useState(document.visibilityState === "visible");
  useEffect(() => {
    const look = () => setIsVisible(document.visibilityState === "visible");
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  return isVisible;
}

/** Follows until the returned function is called. The browser connects again by itself after a lost connection,
 * but not after a refusal. */
function follow(
  place: SharePartition,
  show: (state: LiveState) => void,
  fail: (failure: string) => void,
): () => void {
  let source: EventSource;
  let timer = 0;
  let isEnded = false;
  const begin = () => {
    source = new EventSource(liveUrl(place, LIVE_MS, LIVE_RANGES));
    source.addEventListener("state", (event) => show(JSON.parse(event.data) as LiveState));
    source.addEventListener("problem", (event) => fail((JSON.parse(event.data) as { detail: string }).detail));
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED) {
        fail(LOST);
        return;
      }
      timer = window.setTimeout(begin, RETRY_MS);
      void refusalOf(place).then((failure) => {
        if (!isEnded && source.readyState === EventSource.CLOSED) fail(failure);
      });
    });
  };
  begin();
  return () => {
    isEnded = true;
    clearTimeout(timer);
    source.close();
  };
}

/** The reason of a refusal: an event source does not tell it, but an ordinary request gets the same. */
async function refusalOf(place: SharePartition): Promise<string> {
  try {
    await get(`${recordsPath(place)}?limit=1`);
    return "The broker has too many live pages. The console tries again.";
  } catch (error) {
    return `${reasonOf(error)} The console tries again.`;
  }
}
