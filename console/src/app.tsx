/** The frame of all pages: navigation, theme, and the page of the address. */

import { useEffect, useRef, useState } from "preact/hooks";

import { GroupPage } from "./pages/group";
import { GroupsPage } from "./pages/groups";
import { RecordPage } from "./pages/record";
import { SharePartitionPage } from "./pages/share_partition";
import { StuckPage } from "./pages/stuck";
import { TopicPage } from "./pages/topic";
import { TopicsPage } from "./pages/topics";
import { Actions } from "./parts/actions";
import { links, parseRoute, useFragment, type Route } from "./route";
import { applyTheme, savedTheme, THEMES, type Theme } from "./theme";

export function App() {
  const fragment = useFragment();
  const route = parseRoute(fragment);
  const main = useRef<HTMLElement>(null);
  const title = titleOf(route);
  useFocusOnPage(main, title);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => skip(event, main.current)}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href={links.groups()}>
          <img src="/console/icon.svg" alt="" width="24" height="24" />
          Barnabas
        </a>
        <nav aria-label="Pages">
          <NavLink href={links.groups()} isCurrent={sectionOf(route) === "groups"} text="Groups" />
          <NavLink href={links.topics()} isCurrent={sectionOf(route) === "topics"} text="Topics" />
          <NavLink href={links.stuck(null)} isCurrent={sectionOf(route) === "stuck"} text="Stuck" />
        </nav>
        <ThemeChoice />
      </header>
      <main id="main" class={route.page === "stuck" ? "wide" : ""} tabIndex={-1} ref={main}>
        <Actions fragment={fragment}>
          <Page key={title} route={route} />
        </Actions>
      </main>
    </>
  );
}

function NavLink({ href, isCurrent, text }: { href: string; isCurrent: boolean; text: string }) {
  return (
    <a href={href} {...(isCurrent ? { "aria-current": "page" as const } : {})}>
      {text}
    </a>
  );
}

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case "groups":
      return <GroupsPage />;
    case "group":
      return <GroupPage group={route.group} />;
    case "stuck":
      return <StuckPage group={route.group} />;
    case "share-partition":
      return <SharePartitionPage place={route.place} />;
    case "record":
      return <RecordPage place={route.place} offset={route.offset} />;
    case "topics":
      return <TopicsPage />;
    case "topic":
      return <TopicPage topic={route.topic} />;
    case "unknown":
      return (
        <>
          <h1>There is no such page</h1>
          <p>
            Begin with the <a href={links.groups()}>groups</a>.
          </p>
        </>
      );
  }
}

function ThemeChoice() {
  const [theme, setTheme] = useState<Theme>(savedTheme());
  const choose = (chosen: Theme) => {
    applyTheme(chosen);
    setTheme(chosen);
  };
  return (
    <label class="theme">
      <span>Theme</span>
      <select value={theme} onChange={(event) => choose(event.currentTarget.value as Theme)}>
        {THEMES.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The entry of the navigation that a page belongs to. */
function sectionOf(route: Route): "groups" | "topics" | "stuck" | null {
  if (route.page === "unknown") return null;
  if (route.page === "topics" || route.page === "topic") return "topics";
  return route.page === "stuck" && route.group === null ? "stuck" : "groups";
}

function titleOf(route: Route): string {
  switch (route.page) {
    case "groups":
      return "Groups";
    case "group":
      return route.group;
    case "stuck":
      return route.group === null ? "Stuck records" : `Stuck records of ${route.group}`;
    case "share-partition":
      return `${route.place.topic} ${route.place.partition} in ${route.place.group}`;
    case "record":
      return `Record ${route.offset} of ${route.place.topic} ${route.place.partition} in ${route.place.group}`;
    case "topics":
      return "Topics";
    case "topic":
      return `Topic ${route.topic}`;
    case "unknown":
      return "No such page";
  }
}

/** A screen reader hears the new page, and the keyboard continues in it; the first page keeps the focus. */
function useFocusOnPage(main: { current: HTMLElement | null }, title: string): void {
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${title} · Barnabas`;
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
    scrollTo(0, 0);
  }, [title]);
}

function skip(event: Event, main: HTMLElement | null): void {
  event.preventDefault(); // the fragment of the address names the page
  main?.focus();
}
