/** Tells the newest of several requests, so that the late answer of an older one changes nothing. Pure. */

export class Newest {
  private turn = 0;

  /** Begins a request. The function tells whether no later one has begun, and `end` was not called. */
  begin(): () => boolean {
    const mine = ++this.turn;
    return () => mine === this.turn;
  }

  /** No request that has begun is the newest any more. */
  end(): void {
    this.turn++;
  }
}
