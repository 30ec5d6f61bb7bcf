/** Changes of records by a person: the buttons, a dialog that confirms and asks for the token, the outcome. */

import { useRef, useState } from "preact/hooks";

import { changeRecords, RequestError, type ChangeOfRecords, type RecordRange, type SharePartition } from "../api";
import { counted, offsets } from "../format";
import { forgetToken, savedToken, saveToken } from "../token";
import { TokenField } from "./token_field";

/** The most offsets of one change (`ALTERED_OFFSETS_MAX`). */
const CHANGED_OFFSETS_MAX = 10_000;

const NAMES: Record<ChangeOfRecords, string> = {
  release: "Release",
  archive: "Archive",
};

const EFFECTS: Record<ChangeOfRecords, string> = {
  release: "The locks end, and other members can get the records immediately.",
  archive: "The records are never delivered to this group again.",
};

export interface Asked {
  place: SharePartition;
  change: ChangeOfRecords;
  first: number;
  last: number;
}

/** The buttons of one range. */
export function RangeActions({ place, range, ask }: {
  place: SharePartition;
  range: RecordRange;
  ask: (asked: Asked) => void;
}) {
  const isOpen = range.state === "acquired" || range.state === "available";
  const last = Math.min(range.last_offset, range.first_offset + CHANGED_OFFSETS_MAX - 1);
  const button = (change: ChangeOfRecords) => (
    <button
      type="button"
      aria-label={`${NAMES[change]}: ${offsets(range.first_offset, last)}`}
      onClick={() => ask({ place, change, first: range.first_offset, last })}
    >
      {NAMES[change]}
    </button>
  );
  return (
    <span class="buttons">
      {range.state === "acquired" && button("release")}
      {isOpen && button("archive")}
    </span>
  );
}

/** The dialog of all changes on a page. `ask` opens it; `outcome` says how the last change ended. */
export function useActions() {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [outcome, setOutcome] = useState("");
  const dialog = useRef<HTMLDialogElement>(null);
  const ask = (next: Asked) => {
    setAsked(next);
    setOutcome("");
    dialog.current?.showModal();
  };
  const close = () => dialog.current?.close();
  const done = (text: string) => {
    setOutcome(text);
    close();
  };
  const element = (
    <>
      <p class="outcome" role="status">
        {outcome}
      </p>
      <dialog ref={dialog} aria-labelledby="dialog-title" onClose={() => setAsked(null)}>
        {asked !== null && <Confirmation asked={asked} done={done} cancel={close} />}
      </dialog>
    </>
  );
  return { ask, element };
}

function Confirmation({ asked, done, cancel }: {
  asked: Asked;
  done: (outcome: string) => void;
  cancel: () => void;
}) {
  const [token, setToken] = useState("");
  const [isAsking, setIsAsking] = useState(savedToken() === null);
  const [failure, setFailure] = useState<string | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const name = NAMES[asked.change];

  const submit = async (event: Event) => {
    event.preventDefault();
    setIsBusy(true);
    const given = isAsking ? token.trim() : (savedToken() ?? "");
    try {
      const changed = await changeRecords(asked.place, asked.change, asked.first, asked.last, given);
      saveToken(given);
      done(`${name}: ${counted(changed, "record")} changed.`);
    } catch (error) {
      if (error instanceof RequestError && error.status === 401) {
        forgetToken();
        setIsAsking(true);
      }
      setFailure(error instanceof RequestError ? error.message : String(error));
      setIsBusy(false);
    }
  };

  return (
    <form onSubmit={(event) => void submit(event)}>
      <h2 id="dialog-title">
        {name}: {asked.first === asked.last ? "offset" : "offsets"} {offsets(asked.first, asked.last)}
      </h2>
      <p>
        Group {asked.place.group}, topic {asked.place.topic}, partition {asked.place.partition}. {EFFECTS[asked.change]}
      </p>
      {isAsking && (
        <TokenField token={token} setToken={setToken} />
      )}
      <div role="alert">{failure !== null && <p class="notice failure">{failure}</p>}</div>
      <div class="buttons end">
        <button type="button" onClick={cancel}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={isBusy}>
          {name}
        </button>
      </div>
    </form>
  );
}
