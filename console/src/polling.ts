/** Values of the broker that stay current while the page is visible. */

import { useEffect, useState } from "preact/hooks";

import { liveUrl, RequestError, type LiveState, type SharePartition } from "./api";

export interface Loaded<Value> {
  value: Value | null;
  /** The reason why the value is missing or old; null if it is current. */
  failure: string | null;
}

export const POLL_MS = 2000;

/** Loads again `POLL_MS` after each answer. `key` names the value: another key starts anew. */
export function usePolled<Value>(key: string, load: (signal: AbortSignal) => Promise<Value>): Loaded<Value> {
  const [loaded, setLoaded] = useState<Loaded<Value> & { key: string }>({ key, value: null, failure: null });
  useEffect(() => {
    const ending = new AbortController();
    let timer = 0;
    const look = async () => {
      try {
        const value = await load(ending.signal);
        setLoaded({ key, value, failure: null });
      } catch (error) {
        if (ending.signal.aborted) return;
        const failure = error instanceof RequestError ? error.message : String(error);
        setLoaded((last) => ({ key, value: last.key === key ? last.value : null, failure }));
      }
      if (!ending.signal.aborted) timer = window.setTimeout(lookIfVisible, POLL_MS);
    };
    const lookIfVisible = () => {
      if (document.visibilityState === "visible") void look();
      else document.addEventListener("visibilitychange", lookIfVisible, { once: true });
    };
    void look();
    return () => {
      ending.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", lookIfVisible);
    };
  }, [key]);
  return loaded.key === key ? loaded : { value: null, failure: null };
}

/** The time between two events of a share-partition. */
export const LIVE_MS = 500;
/** The most ranges of one event. */
export const LIVE_RANGES = 500;

export interface Live {
  state: LiveState | null;
  /** When the state arrived, by the clock of performance.now(). */
  arrivedAtMs: number;
  failure: string | null;
}

/** Follows the stream of a share-partition. The browser connects again by itself after a lost connection. */
export function useLive(place: SharePartition): Live {
  const [live, setLive] = useState<Live>({ state: null, arrivedAtMs: 0, failure: null });
  const url = liveUrl(place, LIVE_MS, LIVE_RANGES);
  useEffect(() => {
    const source = new EventSource(url);
    source.addEventListener("state", (event) => {
      setLive({ state: JSON.parse(event.data) as LiveState, arrivedAtMs: performance.now(), failure: null });
    });
    source.addEventListener("problem", (event) => {
      const problem = JSON.parse(event.data) as { detail: string };
      setLive((last) => ({ ...last, failure: problem.detail }));
    });
    source.addEventListener("error", () => {
      const failure =
        source.readyState === EventSource.CLOSED
          ? "The broker refused the stream. Load the page again."
          : "The connection to the broker is lost. The console tries again.";
      setLive((last) => ({ ...last, failure: last.failure ?? failure }));
    });
    return () => source.close();
  }, [url]);
  return live;
}
