import type { Actors, Clock } from '@kusanya/durable-actors';
import { raiseAlert } from '../alerts.ts';
import { loggable } from '../http/http.ts';
import type { Log } from '../log.ts';

/** Somebody tries tokens of operators: an alert about the address that they come from. */
export function tellWrongTokens(deps: { actors: Pick<Actors, 'commit'>; clock: Clock; log: Log }) {
  return (address: string): void => {
    const alert = raiseAlert({ kind: 'wrong_tokens', at: deps.clock.now(), about: address });
    deps.actors
      .commit([alert])
      .catch((error) => deps.log.warn({ address, error: loggable(error) }, 'wrong tokens not told of'));
  };
}
