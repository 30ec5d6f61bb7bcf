/** A field that reduces a list to the entries whose names contain a text. */

import { useState } from "preact/hooks";

export function useFilter(label: string) {
  const [text, setText] = useState("");
  const wanted = text.trim().toLowerCase();
  const field = (
    <label class="filter">
      <span class="unseen">{label}</span>
      <input
        type="search"
        placeholder={label}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </label>
  );
  return { field, isActive: wanted !== "", passes: (name: string) => name.toLowerCase().includes(wanted) };
}
