/** Values of the broker that stay current while the page is visible. */

import { useEffect, useState } from "preact/hooks";

import { RequestError } from "./api";

export interface Loaded<Value> {
  value: Value | null;
  /** The reason why the value is missing or old; null if it is current. */
  failure: string | null;
  /** Loads the value now, as after a change. */
  again: () => void;
}

export const POLL_MS = 2000;

/** The text of an error for the reader. */
export function reasonOf(error: unknown): string {
  return error instanceof RequestError ? error.message : String(error);
}

interface Kept<Value> {
  key: string;
  value: Value | null;
  failure: string | null;
}

/** Loads again `pauseMs` after each answer. `key` names the value: another key starts anew. */
export function usePolled<Value>(
  key: string,
  load: (signal: AbortSignal) => Promise<Value>,
  pauseMs = POLL_MS,
): Loaded<Value> {
  const [kept, setKept] = useState<Kept<Value>>({ key, value: null, failure: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    let timer = 0;
    const look = async () => {
      try {
        const value = await load(ending.signal);
        if (!ending.signal.aborted) setKept({ key, value, failure: null });
      } catch (error) {
        if (ending.signal.aborted) return;
        const failure = `${reasonOf(error)} The console tries again.`;
        setKept((last) => ({ key, value: last.key === key ? last.value : null, failure }));
      }
      if (!ending.signal.aborted) timer = window.setTimeout(lookIfVisible, pauseMs);
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
  }, [key, turn]);
  const again = () => setTurn((last) => last + 1);
  return kept.key === key ? { ...kept, again } : { value: null, failure: null, again };
}
