/** The HTTP API of the broker (docs/http.md): the shapes that the console reads, and the requests. */

export interface Topic {
  name: string;
  partition_count: number;
  is_internal: boolean;
}

export interface Partition {
  partition: number;
  log_start_offset: number | null;
  high_watermark: number | null;
  last_stable_offset: number | null;
  error: string | null;
}

export interface Group {
  group_id: string;
  type: string;
  state: string;
  protocol_type: string;
  member_count: number;
  /** Of a share group; null if no lag is known yet. */
  lag: number | null;
}

export interface Member {
  member_id: string;
  client_id: string;
  client_host: string;
  assignment: { topic: string; partitions: number[] }[] | null;
}

export interface Progress {
  topic: string;
  partition: number;
  start_offset: number | null;
  end_offset: number | null;
  high_watermark: number | null;
  lag: number | null;
  /** Of the oldest record that is not final. */
  oldest_record_timestamp_ms: number | null;
  in_flight_count: number | null;
  locked_count: number | null;
  waiting_count: number | null;
  error: string | null;
}

export interface Holder {
  member_id: string;
  client_id: string | null;
  client_host: string | null;
  /** When the member acquired the records; a renewal does not change it. */
  acquired_ms: number;
  lock_deadline_ms: number;
  lock_remaining_ms: number;
}

export interface RecordRange {
  first_offset: number;
  last_offset: number;
  state: string;
  delivery_count: number | null;
  wait: string | null;
  holder: Holder | null;
  last_change: { cause: string; timestamp_ms: number | null; member_id: string | null } | null;
}

export interface RecordPage {
  next_cursor: string | null;
  start_offset: number;
  end_offset: number;
  high_watermark: number;
  ranges: RecordRange[];
}

/** Neighbouring records of one partition, which may need a person. */
export interface StuckRecords {
  group_id: string;
  topic: string;
  partition: number;
  range: RecordRange;
}

export interface StuckPage {
  next_cursor: string | null;
  records: StuckRecords[];
  unreadable: { group_id: string; topic: string; partition: number; error: string }[];
}

export interface PastChange {
  control_offset: number;
  timestamp_ms: number;
  state: string;
  delivery_count: number;
  cause: string;
  member_id: string | null;
}

export interface RecordHistory {
  next_cursor: string | null;
  record: RecordRange;
  changes: PastChange[];
  source: "log" | "none";
  is_complete: boolean;
}

export interface LiveState {
  progress: Progress;
  ranges: RecordRange[];
  lock_duration_ms: number;
  archived_total: number;
  redelivered_total: number;
  lock_timeouts_total: number;
}

export type Field = "key" | "header" | "value";

export interface FoundRecord {
  offset: number;
  timestamp_ms: number;
  key: string | null;
  value: string | null;
  headers: { name: string; value: string | null }[];
  found_in: Field[];
}

export interface SearchResult {
  records: FoundRecord[];
  next_offset: number | null;
  searched_count: number;
  /** The records in batches that are damaged or too large for a search. */
  skipped_count: number;
}

/** One partition of a topic as a share group reads it. */
export interface SharePartition {
  group: string;
  topic: string;
  partition: number;
}

export type ChangeOfRecords = "release" | "archive" | "dead-letter";

/** The broker refused a request, or did not answer (status 0). The message is for the reader. */
export class RequestError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const BASE = "/api/v1";
/** The most entries of one page. */
const PAGE_ENTRIES = 1000;
/** A longer list is cut here. */
export const LIST_ENTRIES_MAX = 5000;

export function topicPath(topic: string): string {
  return `/topics/${encodeURIComponent(topic)}`;
}

export function groupPath(group: string): string {
  return `/groups/${encodeURIComponent(group)}`;
}

export function shareGroupPath(group: string): string {
  return `/share-groups/${encodeURIComponent(group)}`;
}

export function recordsPath({ group, topic, partition }: SharePartition): string {
  return `${shareGroupPath(group)}/topics/${encodeURIComponent(topic)}/partitions/${partition}/records`;
}

export function liveUrl(place: SharePartition, intervalMs: number, limit: number): string {
  return `${BASE}${recordsPath(place)}/live?interval_ms=${intervalMs}&limit=${limit}`;
}

export async function get<Answer>(path: string, signal?: AbortSignal): Promise<Answer> {
  return request<Answer>(path, signal === undefined ? {} : { signal });
}

/** A list of the broker; `isCut` if it is longer than the console shows. */
export interface List<Entry> {
  entries: Entry[];
  isCut: boolean;
}

/** All entries of a list, page by page, up to `LIST_ENTRIES_MAX`. `name` is that of the list in the answer. */
export async function list<Entry>(path: string, name: string, signal: AbortSignal): Promise<List<Entry>> {
  const entries: Entry[] = [];
  let cursor: string | null = "";
  while (cursor !== null && entries.length < LIST_ENTRIES_MAX) {
    const page: Record<string, unknown> = await get(
      `${path}?limit=${PAGE_ENTRIES}&cursor=${encodeURIComponent(cursor)}`,
      signal,
    );
    entries.push(...(page[name] as Entry[]));
    cursor = page["next_cursor"] as string | null;
  }
  return { entries, isCut: cursor !== null };
}

/** A page of stuck records, of one group or of all. */
/** A record is stuck from this number of failed deliveries on, or from this time on while a member holds it. */
export interface StuckAtLeast {
  failedDeliveries: number;
  heldMs: number;
}

export function stuckRecords(
  group: string | null,
  least: StuckAtLeast,
  cursor: string,
  signal: AbortSignal,
): Promise<StuckPage> {
  const query = new URLSearchParams({
    failed_deliveries: String(least.failedDeliveries),
    held_ms: String(least.heldMs),
    cursor,
  });
  if (group !== null) query.set("group", group);
  return get<StuckPage>(`/stuck-records?${query}`, signal);
}

/** Finds records of one partition from an offset on; null begins with the log. */
export function searchRecords(
  topic: string,
  partition: number,
  text: string,
  fields: Field[],
  firstOffset: number | null,
  token: string,
): Promise<SearchResult> {
  return post(`${topicPath(topic)}/partitions/${partition}/search`, token, { text, fields, first_offset: firstOffset });
}

/** Changes all records of a range, or none. */
export async function changeRecords(
  place: SharePartition,
  change: ChangeOfRecords,
  firstOffset: number,
  lastOffset: number,
  token: string,
): Promise<number> {
  const range = { first_offset: firstOffset, last_offset: lastOffset };
  const answer = await post<{ record_count: number }>(`${recordsPath(place)}/${change}`, token, range);
  return answer.record_count;
}

/** Deletes a topic or a group, by its path. */
export async function remove(path: string, token: string): Promise<void> {
  await respond(path, { method: "DELETE", headers: { ...JSON_TYPE, ...bearer(token) } });
}

const JSON_TYPE = { "Content-Type": "application/json" };

function bearer(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}` };
}

function post<Answer>(path: string, token: string, body: unknown): Promise<Answer> {
  const headers = { ...JSON_TYPE, ...bearer(token) };
  return request<Answer>(path, { method: "POST", headers, body: JSON.stringify(body) });
}

async function request<Answer>(path: string, options: RequestInit): Promise<Answer> {
  return (await (await respond(path, options)).json()) as Answer;
}

/** A successful response. Throws RequestError otherwise. */
async function respond(path: string, options: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(BASE + path, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new RequestError(0, "The broker does not answer.");
  }
  if (!response.ok) throw new RequestError(response.status, await detailOf(response));
  return response;
}

async function detailOf(response: Response): Promise<string> {
  try {
    const problem = (await response.json()) as { detail?: string };
    return problem.detail ?? response.statusText;
  } catch {
    return response.statusText;
  }
}
