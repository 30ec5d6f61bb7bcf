/** The field for the token of changes and searches. */

export function TokenField({ token, setToken }: { token: string; setToken: (token: string) => void }) {
  return (
    <label class="field">
      Token
      <input
        type="password"
        autocomplete="off"
        required
        value={token}
        aria-describedby="token-hint"
        onInput={(event) => setToken(event.currentTarget.value)}
      />
      <small id="token-hint">The content of http.token.file. This tab keeps it until you close it.</small>
    </label>
  );
}
