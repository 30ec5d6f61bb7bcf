/** Search of a topic's records by a text in their keys, headers and values. */

import { useState } from "preact/hooks";

import { searchRecords, type Field, type FoundRecord, type SearchResult } from "../api";
import { count, counted } from "../format";
import { Newest } from "../newest";
import { reasonOf } from "../polling";
import { Empty, Failure, Time } from "./notices";
import { Table } from "./table";
import { useToken } from "./token_field";

const FIELDS: readonly Field[] = ["key", "header", "value"];

/** The part of the log that was searched so far, and the matches in it. */
interface Found extends SearchResult {
  partition: number;
}

export function Search({ topic, partitionCount }: { topic: string; partitionCount: number }) {
  const [text, setText] = useState("");
  const [partition, setPartition] = useState(0);
  const [fields, setFields] = useState<Field[]>([...FIELDS]);
  const { field: tokenField, withToken } = useToken();
  const [found, setFound] = useState<Found | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const [isBusy, setIsBusy] = useState(false);

  const [searches] = useState(() => new Newest());

  const search = async (before: Found | null) => {
    const isNewest = searches.begin();
    setIsBusy(true);
    try {
      const begin = before?.next_offset ?? null;
      const answer = await withToken((token) => searchRecords(topic, partition, text, fields, begin, token));
      if (!isNewest()) return;
      setFailure(null);
      setFound(joined(before, answer, partition));
    } catch (error) {
      if (!isNewest()) return;
      setFailure(reasonOf(error));
    }
    setIsBusy(false);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    void search(null);
  };
  const toggle = (field: Field, isChosen: boolean) => {
    setFields(FIELDS.filter((one) => (one === field ? isChosen : fields.includes(one))));
  };
  /** The next part continues this search; another text, partition or field begins a new one. */
  const begin = (change: () => void) => {
    searches.end();
    setIsBusy(false);
    setFailure(null);
    setFound(null);
    change();
  };

  return (
    <section>
      <h2>Search</h2>
      <form class="search" onSubmit={submit}>
        <label class="field">
          Text
          <input required maxLength={256} value={text} onInput={(event) => {
            const given = event.currentTarget.value;
            begin(() => setText(given));
          }} />
        </label>
        <label class="field">
          Partition
          <select value={partition} onChange={(event) => {
            const chosen = Number(event.currentTarget.value);
            begin(() => setPartition(chosen));
          }}>
            {Array.from({ length: partitionCount }, (_, index) => (
              <option key={index} value={index}>{index}</option>
            ))}
          </select>
        </label>
        <fieldset>
          <legend>In</legend>
          <div class="fields">
          {FIELDS.map((field) => (
            <label key={field}>
              <input
                type="checkbox"
                checked={fields.includes(field)}
                onChange={(event) => {
                  const isChosen = event.currentTarget.checked;
                  begin(() => toggle(field, isChosen));
                }}
              />
              {field}
            </label>
          ))}
          </div>
        </fieldset>
        {tokenField}
        <button type="submit" class="primary" disabled={isBusy || fields.length === 0}>Search</button>
      </form>
      <Failure text={failure} />
      <p role="status" class="quiet">{found === null ? "" : outcomeOf(found)}</p>
      {found !== null && <Matches found={found} />}
      {found !== null && found.next_offset !== null && (
        <button type="button" disabled={isBusy} onClick={() => void search(found)}>
          Search on from offset {count(found.next_offset)}
        </button>
      )}
    </section>
  );
}

function joined(before: Found | null, answer: SearchResult, partition: number): Found {
  return {
    partition,
    records: [...(before?.records ?? []), ...answer.records],
    next_offset: answer.next_offset,
    searched_count: (before?.searched_count ?? 0) + answer.searched_count,
    skipped_count: (before?.skipped_count ?? 0) + answer.skipped_count,
  };
}

function outcomeOf(found: Found): string {
  const end = found.next_offset === null ? "to the end of the log" : `before offset ${count(found.next_offset)}`;
  const searched = `${counted(found.records.length, "match", "matches")} in ${counted(found.searched_count, "record")} ${end}.`;
  if (found.skipped_count === 0) {
    return searched;
  }
  return `${searched} ${counted(found.skipped_count, "record")} in batches that are damaged or too large were not searched.`;
}

function Matches({ found }: { found: Found }) {
  if (found.records.length === 0) {
    return (
      <Empty title="No record has this text">Capital letters differ from small ones. Other partitions may have it.</Empty>
    );
  }
  return (
    <Table<FoundRecord>
      caption={`Matches in partition ${found.partition}`}
      rows={found.records}
      keyOf={(record) => record.offset}
      columns={[
        { title: "Offset", isHead: true, isNumber: true, cell: (record) => count(record.offset) },
        { title: "Time", cell: (record) => <Time timestampMs={record.timestamp_ms} /> },
        { title: "Key", cell: (record) => <Content text={record.key} /> },
        { title: "Value", cell: (record) => <Content text={record.value} /> },
        {
          title: "Headers",
          cell: (record) => (
            <Content text={record.headers.map((one) => `${one.name}: ${one.value ?? "null"}`).join("\n")} />
          ),
        },
        { title: "Found in", cell: (record) => record.found_in.join(", ") },
      ]}
    />
  );
}

function Content({ text }: { text: string | null }) {
  return text === null ? <span class="quiet">null</span> : <code class="content">{text}</code>;
}
