import { type OperatorPrincipal, roleAllows } from '../http/http.ts';
import { maskPhonesIn } from '../log.ts';

/**
 * What was sent and received, as it was: exact for those who act on it. A viewer is shown the same text with each
 * phone number in it masked, as everywhere else.
 */
export interface Sight {
  isExact: boolean;
  text<Text extends string | null | undefined>(text: Text): Text;
}

export function sightOf({ role }: OperatorPrincipal): Sight {
  const isExact = roleAllows(role, 'operator');
  return {
    isExact,
    text: (text) => (isExact || !text ? text : (maskPhonesIn(text) as typeof text)),
  };
}
