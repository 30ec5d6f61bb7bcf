/** Changes by a person: the buttons, the dialog that confirms one, and its outcome. */

import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";

import type { RecordRange, SharePartition } from "../api";
import { changesOf, lastChanged, recordChange, VERBS, type Change } from "../changes";
import { offsets } from "../format";
import { reasonOf } from "../polling";
import type { Column } from "./table";
import { useToken } from "./token_field";

/** Asks the reader for a confirmation; `done` is called after a change that was made. */
export type Ask = (change: Change, done?: () => void) => void;

const Asking = createContext<Ask>(() => {});

/** The function that opens the dialog. */
export function useAsk(): Ask {
  return useContext(Asking);
}

interface Asked {
  change: Change;
  done: () => void;
}

interface Outcome {
  text: string;
  /** The page that tells it. */
  fragment: string;
}

/** The dialog and the outcome of all pages. */
export function Actions({ fragment, children }: { fragment: string; children: ComponentChildren }) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const dialog = useRef<HTMLDialogElement>(null);
  const ask: Ask = (change, done = () => {}) => {
    setAsked({ change, done });
    setOutcome(null);
    dialog.current?.showModal();
  };
  const close = () => dialog.current?.close();
  const finish = ({ change, done }: Asked, text: string) => {
    close();
    setOutcome({ text, fragment: change.next ?? fragment });
    if (change.next !== null) location.hash = change.next;
    done();
  };
  return (
    <Asking.Provider value={ask}>
      <p class="outcome" role="status">
        {outcome !== null && outcome.fragment === fragment ? outcome.text : ""}
      </p>
      {children}
      <dialog ref={dialog} aria-labelledby="dialog-title" onClose={() => setAsked(null)}>
        {asked !== null && (
          <Confirmation change={asked.change} finish={(text) => finish(asked, text)} cancel={close} />
        )}
      </dialog>
    </Asking.Provider>
  );
}

function Confirmation({ change, finish, cancel }: {
  change: Change;
  finish: (outcome: string) => void;
  cancel: () => void;
}) {
  const { field, withToken } = useToken();
  const [name, setName] = useState("");
  const [failure, setFailure] = useState<string | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector<HTMLElement>("input, button")?.focus(), []);

  const submit = async (event: Event) => {
    event.preventDefault();
    setIsBusy(true);
    try {
      finish(await withToken(change.send));
    } catch (error) {
      setFailure(reasonOf(error));
      setIsBusy(false);
    }
  };

  return (
    <form ref={form} onSubmit={(event) => void submit(event)}>
      <h2 id="dialog-title">
        {change.verb}: {change.thing}
      </h2>
      <p>{change.effect}</p>
      {change.typedName !== null && (
        <label class="field">
          Type {change.typedName} to confirm
          <input required autocomplete="off" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
      )}
      {field}
      <div role="alert">{failure !== null && <p class="notice failure">{failure}</p>}</div>
      <div class="buttons end">
        <button type="button" onClick={cancel}>
          Cancel
        </button>
        <button
          type="submit"
          class={change.typedName === null ? "primary" : "danger"}
          disabled={isBusy || (change.typedName !== null && name !== change.typedName)}
        >
          {change.verb}
        </button>
      </div>
    </form>
  );
}

/** The buttons of one range. */
export function RangeActions({ place, range, done }: {
  place: SharePartition;
  range: RecordRange;
  done?: (() => void) | undefined;
}) {
  const ask = useAsk();
  const changes = changesOf(range);
  if (changes.length === 0) return null;
  return (
    <span class="buttons">
      {changes.map((change) => (
        <button
          key={change}
          type="button"
          class="small"
          aria-label={`${VERBS[change]}: ${offsets(range.first_offset, lastChanged(range))}`}
          onClick={() => ask(recordChange(place, range, change), done)}
        >
          {VERBS[change]}
        </button>
      ))}
    </span>
  );
}

/** The column with the buttons of each row; its cells are empty where nothing can be changed. */
export function actionsColumn<Row extends RecordRange>(
  placeOf: (row: Row) => SharePartition,
  done?: () => void,
): Column<Row> {
  return {
    title: "Actions",
    cell: (row) =>
      changesOf(row).length === 0 ? "" : <RangeActions place={placeOf(row)} range={row} done={done} />,
  };
}

/** The button for a change of the thing that a page is about. */
export function ChangeButton({ change }: { change: Change }) {
  const ask = useAsk();
  return (
    <button type="button" class="danger-quiet" onClick={() => ask(change)}>
      {change.verb} {change.thing.split(" ", 1)}
    </button>
  );
}
