/** Empty, loading and failed states, and the head of a page. */

import type { ComponentChildren } from "preact";

import { ago, exactTime, isoTime } from "../format";
import type { Loaded } from "../polling";

export interface Crumb {
  text: string;
  href: string;
}

/** The way to a page, and its title. */
export function PageHead({ crumbs, title, children }: {
  crumbs: Crumb[];
  title: string;
  children?: ComponentChildren;
}) {
  return (
    <div class="head">
      {crumbs.length > 0 && (
        <nav class="crumbs" aria-label="Way to this page">
          <ol>
            {crumbs.map((crumb) => (
              <li key={crumb.href}>
                <a href={crumb.href}>{crumb.text}</a>
              </li>
            ))}
          </ol>
        </nav>
      )}
      <div class="title">
        <h1>{title}</h1>
        {children}
      </div>
    </div>
  );
}

export function Failure({ text }: { text: string | null }) {
  return (
    <div role="alert">{text !== null && <p class="notice failure">{text}</p>}</div>
  );
}

export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      <div>{children}</div>
    </div>
  );
}

/** A note that a list is longer than the page shows. */
export function Cut({ isCut, text }: { isCut: boolean; text: string }) {
  return isCut ? <p class="quiet">{text}</p> : null;
}

/** The content of a value once it is there; the failure beside an old value. */
export function WhenLoaded<Value>({ loaded, children }: {
  loaded: Loaded<Value>;
  children: (value: Value) => ComponentChildren;
}) {
  return (
    <>
      <Failure text={loaded.failure} />
      {loaded.value !== null && children(loaded.value)}
      {loaded.value === null && loaded.failure === null && <p class="quiet">Loading …</p>}
    </>
  );
}

/** "3 minutes ago", with the exact time in its title. A time that is no date is shown in milliseconds. */
export function Time({ timestampMs }: { timestampMs: number }) {
  const dateTime = isoTime(timestampMs);
  if (dateTime === null) return <>{exactTime(timestampMs)}</>;
  return (
    <time dateTime={dateTime} title={exactTime(timestampMs)}>
      {ago(timestampMs, Date.now())}
    </time>
  );
}

/** A number of a summary. */
export function Figure({ label, value, hint }: { label: string; value: ComponentChildren; hint?: string }) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd>
        {value}
        {hint !== undefined && <small>{hint}</small>}
      </dd>
    </div>
  );
}
