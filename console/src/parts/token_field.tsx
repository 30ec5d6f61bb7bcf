/** The token of changes and searches: asked for once, and again if the broker refuses it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { RequestError } from "../api";
import { forgetToken, savedToken, saveToken } from "../token";

/** The statuses with which the broker says nothing about the token, or refuses it. */
const NOT_ACCEPTED: readonly number[] = [0, 401, 403];

export interface TokenUse {
  /** The field while the token is not known. */
  field: JSX.Element | null;
  /** Sends a request with the token, and keeps a token that the broker has accepted. Throws as the request does. */
  withToken: <Answer>(request: (token: string) => Promise<Answer>) => Promise<Answer>;
}

export function useToken(): TokenUse {
  const [typed, setTyped] = useState("");
  const [isAsking, setIsAsking] = useState(savedToken() === null);
  const accept = (token: string) => {
    saveToken(token);
    setIsAsking(false);
  };
  const withToken = async <Answer,>(request: (token: string) => Promise<Answer>): Promise<Answer> => {
    const given = isAsking ? typed : (savedToken() ?? "");
    try {
      const answer = await request(given);
      accept(given);
      return answer;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      if (error.status === 401) {
        forgetToken();
        setIsAsking(true);
      } else if (!NOT_ACCEPTED.includes(error.status)) {
        accept(given);
      }
      throw error;
    }
  };
  return { field: isAsking ? <TokenField token={typed} setToken={setTyped} /> : null, withToken };
}

function TokenField({ token, setToken }: { token: string; setToken: (token: string) => void }) {
  return (
    <label class="field">
      Token
      <input
        type="password"
        autocomplete="off"
        required
        pattern="[!-~]+"
        value={token}
        aria-describedby="token-hint"
        onInput={(event) => setToken(event.currentTarget.value.trim())}
      />
      <small id="token-hint">The content of http.token.file. This tab keeps it until you close it.</small>
    </label>
  );
}
